// One version of a model: how it is called, what it is made of, and what computes it.
import { call, useFetch } from "../api.js";
import { Button, Chip, Empty, Facts, Fetched, Field, PageHead, Panel, Table, notify } from "../components.js";
import { bytes, count, duration } from "../format.js";
import { useLive } from "../live.js";
import { ModelState, versionRows } from "../model_rows.js";
import { go, link } from "../router.js";
import { html, useState } from "../ui.js";
import { Steering } from "./models.js";
import { SignaturePanel } from "../signature_form.js";

export default function Model({ params, query }) {
  const { name } = params;
  const live = useLive().latest?.models.find((one) => one.name === name);
  const versions = live?.versions.map((one) => String(one.version)) ?? [];
  const asked = `console/api/models/${encodeURIComponent(name)}${query.version ? `?version=${encodeURIComponent(query.version)}` : ""}`;
  const state = useFetch(asked);
  return html`<${PageHead} title=${name} crumb=${["Models", "#/models"]}>
      ${versions.length > 1 && html`<${Field} label="Version">${(field) => html`<select ...${field} value=${query.version ?? state.data?.version}
        onChange=${(event) => go("models", name, { version: event.target.value })}>
        ${versions.map((version) => html`<option key=${version} value=${version}>${version}</option>`)}</select>`}<//>`}
      ${live && html`<${Steering} model=${live} done=${state.reload} />`}<//>
    <${Fetched} state=${state} what="Reading the model…">${(model) => html`
      <${About} model=${model} live=${live} />
      ${defaultFirst(model.signatures).map((signature) => html`<${SignaturePanel} key=${signature.name} model=${model} signature=${signature} />`)}
      <div class="grid">
        <${Ops} model=${model} />
        <div class="page"><${Clusters} model=${model} /><${Unclustered} model=${model} /></div>
      </div>`}<//>`;
}

// The signature that a request means if it names none.
const DEFAULT = "serving_default";
const defaultFirst = (signatures) =>
  [...signatures].sort((a, b) => (b.name === DEFAULT) - (a.name === DEFAULT) || (a.name < b.name ? -1 : 1));

function About({ model, live }) {
  const row = live && versionRows([live]).find((one) => String(one.version) === String(model.version));
  const { memory } = model;
  return html`<${Panel} title=${`Version ${model.version}`} actions=${html`
      <${OpenSession} model=${model} /><a class="button" href=${link("timeline", { model: model.name })}>Trace a step</a>`}>
    <${Facts} items=${[
      ["State", row ? html`<${ModelState} row=${row} />` : html`<${Chip} state=${model.state} />`],
      ["Labels", row?.labels.join(", ") || "none"],
      ["In flight", count(row?.in_flight)],
      ["Weights", bytes(memory.weights_bytes)],
      ["Graph", bytes(memory.graph_bytes)],
      ["Compiled clusters", bytes(memory.cluster_bytes)],
      ["Engine of clusters", model.engine || "none"],
      model.engine_reason && ["Not the chosen engine", model.engine_reason],
      model.base_path && ["Folder", html`<span class="mono">${model.base_path}</span>`],
    ]} /><//>`;
}

function OpenSession({ model }) {
  const [busy, setBusy] = useState(false);
  const open = async () => {
    setBusy(true);
    try {
      const body = { model: model.name, version: model.version };
      go("sessions", (await call("v1/sessions", { method: "POST", body })).session);
    } catch (error) {
      notify(error.message, "bad");
      setBusy(false);
    }
  };
  return html`<${Button} busy=${busy} onClick=${open}>Open a session on it<//>`;
}

function Ops({ model }) {
  return html`<div class="page">
    ${model.missing_ops.length > 0 && html`<${Panel} flush title="Missing operations" note="A step that reaches one of them fails.">
      <${Table} caption="Missing operations" rows=${model.missing_ops} rowKey=${(row) => row.op} columns=${[
        { key: "op", label: "Operation", head: true, render: (row) => html`<span class="mono">${row.op}</span>` },
        { key: "nodes", label: "Nodes", num: true, render: (row) => count(row.nodes) },
        { key: "why", label: "Why" },
      ]} /><//>`}
    <${Panel} flush title="Operations" note=${`${count(model.ops.reduce((sum, row) => sum + row.nodes, 0))} nodes of ${count(model.ops.length)} kinds${model.missing_ops.length ? "" : ", all of them supported"}`}>
      <${Table} caption="Operations by kind" rows=${model.ops} rowKey=${(row) => row.op} order=${["nodes", "descending"]} limit=${15} empty="The graph has no nodes" columns=${[
        { key: "op", label: "Operation", head: true, render: (row) => html`<span class="mono">${row.op}</span>` },
        { key: "nodes", label: "Nodes", num: true, render: (row) => count(row.nodes) },
      ]} /><//></div>`;
}

function Clusters({ model }) {
  return html`<${Panel} flush title="Clusters" note="groups of nodes that run as one">
    ${model.clusters.length ? html`<${Table} wide caption="Clusters" rows=${model.clusters} columns=${[
      { key: "fetches", label: "Step", head: true, value: (row) => row.fetches.join(", "), render: (row) => html`<span class="mono">${row.fetches.join(", ")}</span>` },
      { key: "nodes", label: "Nodes", num: true, render: (row) => count(row.nodes) },
      { key: "engine", label: "Engine", render: (row) => row.engine ? `${row.engine} in ${row.precision}` : "numpy kernels" },
      { key: "state", label: "State", render: (row) => html`<${Chip} state=${row.state} kind=${{ compiled: "good", compiling: "busy", dissolved: "warn" }[row.state] ?? ""} />` },
      { key: "forms", label: "Forms", num: true, render: (row) => count(row.forms) },
      { key: "bytes_held", label: "Memory", num: true, render: (row) => bytes(row.bytes_held) },
      { key: "compile_seconds", label: "Compiled in", num: true, render: (row) => duration(row.compile_seconds) },
    ]} />` : html`<${Empty} title="No step of this version has clusters">Steps are measured first. Where it pays, their expensive nodes are compiled in the background.<//>`}<//>`;
}

function Unclustered({ model }) {
  const rows = model.unclustered ?? [];
  // A row without an operation says why there are none yet.
  if (rows.length === 1 && !rows[0].op) return html`<${Panel} title="Outside of clusters"><p>${rows[0].why}</p><//>`;
  return rows.length > 0 && html`<${Panel} flush title="Outside of clusters" note="and why">
    <${Table} caption="Operations outside of clusters" rows=${rows} limit=${15} columns=${[
      { key: "op", label: "Operation", head: true, render: (row) => html`<span class="mono">${row.op}</span>` },
      { key: "nodes", label: "Nodes", num: true, render: (row) => count(row.nodes) },
      { key: "why", label: "Why" },
    ]} /><//>`;
}
