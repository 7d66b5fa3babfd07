// The form of a step: feeds prefilled from a signature, free feeds, fetches and targets.
import { call, request } from "../api.js";
import { Button, Code, ErrorNote, Field, notify } from "../components.js";
import { duration, shape } from "../format.js";
import { html, useEffect, useRef, useState } from "../ui.js";
import { parseExact, tensorText } from "./tensors.js";

const FREE = "";
const names = (text) => text.split(/[\n,]/).map((name) => name.trim()).filter(Boolean);
let made = 0;
const feed = (name = "", value = "", note = "") => ({ key: (made += 1), name, value, note });
const requestId = () => `console-${crypto.getRandomValues(new Uint32Array(1))[0].toString(16)}`;

function filled(signature) {
  return {
    feeds: (signature?.inputs ?? []).map((one) => feed(one.tensor, one.example, `${one.name}: ${one.dtype} ${shape(one.shape)}`)),
    fetches: (signature?.outputs ?? []).map((one) => one.tensor).join("\n"),
  };
}

/** The body of `:run`. Values stay the text that was entered, so that no digit is lost. */
function bodyOf(form) {
  const feeds = form.feeds.filter((one) => one.name.trim()).map((one) => {
    try {
      JSON.parse(one.value.replace(/\b-?(NaN|Infinity)\b/g, "0"));
    } catch {
      throw new Error(`The value of ${one.name} is not JSON. A tensor is a number, a text in quotes, or a nested list.`);
    }
    return `${JSON.stringify(one.name.trim())}: ${one.value}`;
  });
  const options = {};
  if (form.timeout) options.timeout_in_ms = Number(form.timeout);
  const rest = { fetches: names(form.fetches), targets: names(form.targets), options };
  if (form.priority) rest.priority = form.priority;
  return `{"feeds": {${feeds.join(", ")}}, ${JSON.stringify(rest).slice(1)}`;
}

/**
 * `signatures` prefill the form. `open()` returns (a promise of) the id of the session that the step
 * runs in, `ended(id)` is called afterwards. `traceOnly` always traces. `onTrace` gets the trace of
 * a step and what it fetched, in place of the values; `onDone` is called after each step.
 */
export function StepForm({ signatures, open, ended, traceOnly, onTrace, onDone }) {
  const [chosen, setChosen] = useState(signatures[0]?.name ?? FREE);
  const [form, setForm] = useState(() => ({ ...filled(signatures[0]), targets: "", priority: "", timeout: "", trace: false }));
  const [state, setState] = useState({ busy: false, error: null, answer: null, seconds: 0 });
  const running = useRef(null);
  const change = (part) => setForm((old) => ({ ...old, ...part }));
  const choose = (name) => {
    setChosen(name);
    change(filled(signatures.find((one) => one.name === name)));
  };
  useEffect(() => () => running.current?.control.abort(), []);
  const changeFeed = (key, part) =>
    change({ feeds: form.feeds.map((one) => (one.key === key ? { ...one, ...part } : one)) });
  const submit = async (event) => {
    event.preventDefault();
    if (state.busy) return;
    const trace = traceOnly || form.trace;
    setState({ busy: true, error: null, answer: null, seconds: 0 });
    let id = null;
    try {
      const body = bodyOf(form);
      id = await open();
      const mine = { id, request: requestId(), control: new AbortController() };
      running.current = mine;
      // A step is compiled at its first run, which is not what a timeline is for. Traced steps are
      // compiled by themselves.
      if (traceOnly) await run(mine, body, trace);
      mine.request = requestId();
      const from = performance.now();
      const answer = await run(mine, body, trace);
      setState({ busy: false, error: null, answer, seconds: (performance.now() - from) / 1000 });
      if (trace) onTrace(answer, names(form.fetches).concat(names(form.targets)).join(", "));
    } catch (error) {
      if (error.name !== "AbortError") setState({ busy: false, error, answer: null, seconds: 0 });
    } finally {
      running.current = null;
      if (id !== null) await ended?.(id);
      onDone?.();
    }
  };
  const cancel = async () => {
    const step = running.current;
    if (!step) return; // its session is still being opened
    try {
      await call(`v1/sessions/${encodeURIComponent(step.id)}:cancel`, { method: "POST", body: { request_id: step.request } });
      notify("The step is cancelled.");
    } catch (error) {
      notify(error.message, "warn");
    }
  };
  return html`<form class="stack" onSubmit=${submit} aria-label="Run a step">
    ${signatures.length > 0 && html`<${Field} label="Signature">${(field) => html`<select ...${field} value=${chosen} onChange=${(event) => choose(event.target.value)}>
      ${signatures.map((one) => html`<option key=${one.name} value=${one.name}>${one.name}</option>`)}
      <option value=${FREE}>None: free feeds and fetches</option></select>`}<//>`}
    ${form.feeds.map((one, i) => html`<fieldset class="feed" key=${one.key}>
      <legend>Feed ${i + 1}${one.note && html` <span class="muted">${one.note}</span>`}</legend>
      <${Field} label="Tensor">${(field) => html`<input ...${field} class="mono" value=${one.name} placeholder="x:0" spellcheck="false"
        onInput=${(event) => changeFeed(one.key, { name: event.target.value })} />`}<//>
      <${Button} label=${`Remove feed ${i + 1}`} onClick=${() => change({ feeds: form.feeds.filter((other) => other !== one) })}>Remove<//>
      <div class="value"><${Field} label="Value (JSON)">${(field) => html`<textarea ...${field} rows="2" value=${one.value} spellcheck="false"
        onInput=${(event) => changeFeed(one.key, { value: event.target.value })}></textarea>`}<//></div>
    </fieldset>`)}
    <div class="row"><${Button} onClick=${() => change({ feeds: [...form.feeds, feed()] })}>Add a feed<//></div>
    <div class="grid narrow">
      <${Field} label="Fetches" hint="Tensors, one a line.">${(field) => html`<textarea ...${field} rows="2" value=${form.fetches} spellcheck="false"
        onInput=${(event) => change({ fetches: event.target.value })}></textarea>`}<//>
      <${Field} label="Targets" hint="Nodes that run without a result, one a line.">${(field) => html`<textarea ...${field} rows="2" value=${form.targets} spellcheck="false"
        onInput=${(event) => change({ targets: event.target.value })}></textarea>`}<//>
    </div>
    <div class="grid narrow">
      <${Field} label="Priority" hint="A name of the server's priorities; empty is its default.">${(field) => html`<input ...${field} value=${form.priority}
        onInput=${(event) => change({ priority: event.target.value.trim() })} />`}<//>
      <${Field} label="Time limit in ms" hint="Empty is the server's.">${(field) => html`<input ...${field} type="number" min="1" value=${form.timeout}
        onInput=${(event) => change({ timeout: event.target.value })} />`}<//>
    </div>
    <div class="row">
      <${Button} type="submit" kind="primary" busy=${state.busy}>${state.busy ? "Running…" : traceOnly ? "Run and trace" : "Run the step"}<//>
      ${state.busy && html`<${Button} kind="danger" onClick=${cancel}>Cancel the step<//>`}
      ${!traceOnly && html`<label class="row"><input type="checkbox" checked=${form.trace} onChange=${(event) => change({ trace: event.target.checked })} /> Trace it</label>`}
    </div>
    <div role="status">${state.answer && `Done in ${duration(state.seconds)}, with the way there and back.`}</div>
    ${state.answer && html`<${Answer} answer=${state.answer} />`}
    <${ErrorNote} error=${state.error} title="The step failed." />
  </form>`;
}

async function run({ id, request: request_id, control }, body, trace) {
  const session = `sessions/${encodeURIComponent(id)}`;
  const response = await request(trace ? `console/api/${session}/trace` : `v1/${session}:run`, {
    method: "POST", body, signal: control.signal, headers: { "X-Request-Id": request_id },
  });
  return parseExact(await response.text());
}

function Answer({ answer }) {
  const outputs = Object.entries(answer.outputs ?? {});
  return html`<div class="stack">
    ${outputs.map(([name, tensor]) => html`<div class="stack" key=${name}>
      <h3><span class="mono">${name}</span> <span class="muted">${tensor.dtype} ${shape(tensor.shape)}</span></h3>
      <${Code} text=${tensorText(tensor.data)} label=${`Value of ${name}`} /></div>`)}
  </div>`;
}
