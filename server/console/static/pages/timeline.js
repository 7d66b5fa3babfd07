// The timeline of a traced step: of the last one that was traced here, or of a model's signature.
import { call, saveFile, useFetch } from "../api.js";
import { Bar, Button, Empty, ErrorNote, Fetched, Field, PageHead, Panel, Table } from "../components.js";
import { duration, percent } from "../format.js";
import { signaturesOf, useMetadata } from "../session/signatures.js";
import { StepForm } from "../session/step_form.js";
import { Lanes } from "../timeline/lanes.js";
import { keepTrace, keptTrace } from "../timeline/step_trace.js";
import { html, useState } from "../ui.js";

const AROUND = 3; // times its length around a span that is shown

const noteOf = (trace) => [
  `${trace.what}: ${duration(trace.end / 1e9)}`,
  "each node by itself, without clusters",
  trace.truncated && "only its first nodes",
].filter(Boolean).join("; ");

function Trace({ trace }) {
  const [view, setView] = useState([0, trace.end]);
  const [chosen, choose] = useState(null);
  const show = (span) => {
    const half = ((span.end - span.start) * AROUND) / 2;
    const middle = (span.start + span.end) / 2;
    choose(span);
    setView([Math.max(0, middle - half), Math.min(trace.end, middle + half)]);
  };
  if (!trace.lanes.length) return html`<${Panel} title="Timeline"><${Empty} title="The step ran no node." /><//>`;
  return html`<${Panel} title="Timeline" note=${noteOf(trace)}
      actions=${html`<${Button} onClick=${() => saveFile("step-trace.json", trace.file)}>Download for Perfetto<//>`}>
      <${Lanes} ...${{ trace, view, setView, chosen, choose }} /><//>
    <${Panel} title="Slowest ops" flush><${Table} caption="The ten slowest ops" rows=${trace.slowest} order=${["seconds", "descending"]} rowKey=${({ span }) => `${span.node} ${span.start}`} columns=${[
      { key: "node", label: "Node", head: true, value: ({ span }) => span.node, render: ({ span }) => html`<span class="mono">${span.node}</span>` },
      { key: "op", label: "Op", value: ({ span }) => span.op, render: ({ span }) => html`<span class="nowrap">${span.op}</span>` },
      { key: "seconds", label: "Time", num: true, render: ({ seconds }) => duration(seconds) },
      { key: "share", label: "Of all nodes", render: ({ span, share }) => html`<${Bar} value=${share} max=${1} label=${`Share of ${span.node}`} text=${percent(share)} />` },
      { key: "output", label: "Output", value: ({ span }) => span.output, render: ({ span }) => span.output && html`<span class="mono small">${span.output}</span>` },
      { key: "show", label: "", sort: false, render: ({ span }) => html`<${Button} label=${`Show ${span.node} in the timeline`} onClick=${() => show(span)}>Show<//>` },
    ]} /><//>`;
}

/** Each step has a session of its own, so that nothing it does is seen elsewhere. */
function TraceModel({ name, onTrace }) {
  const state = useMetadata({ name });
  const open = async () => (await call("v1/sessions", { method: "POST", body: { model: name, name: "timeline", lease_seconds: 60 } })).session;
  const ended = (id) => call(`v1/sessions/${encodeURIComponent(id)}:close`, { method: "POST", body: {} }).catch(() => {});
  return html`<${Fetched} state=${state}>${(metadata) => html`<${StepForm} traceOnly
    signatures=${signaturesOf(metadata)} open=${open} ended=${ended} onTrace=${onTrace} />`}<//>`;
}

export default function Timeline({ query }) {
  const [trace, setTrace] = useState(keptTrace());
  const [turn, setTurn] = useState(0);
  const models = useFetch("v1/models");
  const [chosen, setChosen] = useState(query.model ?? "");
  const traced = (answer, what) => {
    keepTrace(answer, what);
    setTrace(keptTrace());
    setTurn(turn + 1);
    scrollTo(0, 0);
  };
  const names = (models.data?.models ?? []).map((one) => one.name);
  const name = names.includes(chosen) ? chosen : names[0];
  return html`<${PageHead} title="Step timeline" />
    ${trace ? html`<${Trace} key=${turn} trace=${trace} />`
      : html`<${Panel} title="Timeline"><${Empty} title="No step has been traced on this page yet.">Trace a model's signature below, or a step of a session on its page.<//><//>`}
    <${Panel} title="Trace a model" note="The second run is traced; the first one compiles the step."><div class="stack">
      <${ErrorNote} error=${models.error} retry=${models.reload} />
      ${name && html`<${Field} label="Model">${(field) => html`<select ...${field} value=${name} onChange=${(event) => setChosen(event.target.value)}>
        ${names.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>`}<//>
        <${TraceModel} key=${name} name=${name} onTrace=${traced} />`}
      ${models.data && !name && html`<${Empty} title="No model is served." />`}</div><//>`;
}
