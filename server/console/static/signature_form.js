// A signature with its tensors, and a request that can be edited and sent.
import { request } from "./api.js";
import { Button, Code, ErrorNote, Field, Panel, Table } from "./components.js";
import { count, duration, shape } from "./format.js";
import { indented } from "./json_text.js";
import { html, useState } from "./ui.js";

const MOST = 20_000; // characters of an answer that are shown

function Tensors({ title, rows }) {
  return html`<div class="stack-tight"><h3>${title}</h3><${Table} caption=${title} rows=${rows} rowKey=${(row) => row.alias} empty="None" columns=${[
    { key: "alias", label: "Name", head: true, sort: false, render: (row) => html`<span class="mono">${row.alias}</span>` },
    { key: "dtype", label: "Type", sort: false },
    { key: "shape", label: "Shape", sort: false, render: (row) => html`<span class="mono">${shape(row.shape)}</span>` },
  ]} /></div>`;
}

export function SignaturePanel({ signature }) {
  const { name, method, inputs, outputs, example } = signature;
  return html`<${Panel} title=${name} note=${method}>
    <div class="grid even">
      <div class="stack"><${Tensors} title="Inputs" rows=${inputs} /><${Tensors} title="Outputs" rows=${outputs} /></div>
      ${example ? html`<${Example} name=${name} example=${example} />` : html`<p class="muted">This signature can't be called over HTTP.</p>`}
    </div><//>`;
}

function Example({ name, example }) {
  const written = indented(JSON.stringify(example.body));
  const [text, setText] = useState(written);
  const [answer, setAnswer] = useState(null);
  const send = async (event) => {
    event.preventDefault();
    setAnswer({ busy: true });
    const started = performance.now();
    try {
      const response = await request(example.path, { method: "POST", body: text });
      setAnswer({ text: shortened(indented(await response.text())), seconds: (performance.now() - started) / 1000 });
    } catch (error) {
      setAnswer({ error, seconds: (performance.now() - started) / 1000 });
    }
  };
  return html`<form class="stack" onSubmit=${send}>
    <${Field} label=${`Request: POST ${example.path}`}>${(field) => html`<textarea ...${field} rows=${Math.min(14, Math.max(5, text.split("\n").length))}
      spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)}></textarea>`}<//>
    <div class="row"><${Button} type="submit" kind="primary" busy=${answer?.busy} label=${`Send the request to ${name}`}>${answer?.busy ? "Sending…" : "Send"}<//>
      ${text !== written && html`<${Button} onClick=${() => setText(written)}>Restore the example<//>`}
      <span class="muted" role="status">${answer?.seconds !== undefined && `${answer.error ? "Refused" : "Answered"} after ${duration(answer.seconds)}`}</span></div>
    <${ErrorNote} error=${answer?.error} />
    ${answer?.text && html`<${Code} text=${answer.text} label=${`Answer of ${name}`} />`}
  </form>`;
}

function shortened(text) {
  return text.length > MOST ? `${text.slice(0, MOST)}\n… ${count(text.length - MOST)} characters more` : text;
}
