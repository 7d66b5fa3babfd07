// What a session holds: its graph by functions, variables with histograms, queues with their fill.
import { useFetch } from "../api.js";
import { Bar, Button, Facts, Fetched, Panel, Table } from "../components.js";
import { bytes, count, number, shape } from "../format.js";
import { html, useState } from "../ui.js";

const of = (id, part) => `console/api/sessions/${encodeURIComponent(id)}/${part}`;
const cut = (data) => (data.truncated ? "cut: there are more" : "");

function Ops({ ops }) {
  return html`<${Table} caption="Nodes by op" rows=${ops} rowKey=${(one) => one.op} empty="No nodes." order=${["count", "descending"]} limit=${12}
    columns=${[
      { key: "op", label: "Op", head: true, render: (one) => html`<span class="mono">${one.op}</span>` },
      { key: "count", label: "Nodes", num: true, render: (one) => count(one.count) },
    ]} />`;
}

export function GraphPanel({ id, version }) {
  // The version is only there so that an extended graph is asked for again.
  const state = useFetch(of(id, `graph?seen=${version}`));
  return html`<${Panel} title="Graph" note=${state.data ? cut(state.data) : ""} flush><${Fetched} state=${state}>${(graph) => html`
    <${Table} caption="Functions" rowKey=${(one) => one.name} rows=${[{ name: "Main graph", nodes: graph.nodes, ops: graph.ops, main: true }, ...graph.functions]} limit=${20} columns=${[
      { key: "name", label: "Function", head: true, render: (one) => html`<details><summary>${one.main ? one.name : html`<span class="mono">${one.name}</span>`}</summary><${Ops} ops=${one.ops} /></details>` },
      { key: "nodes", label: "Nodes", num: true, render: (one) => count(one.nodes) },
    ]} />`}<//><//>`;
}

/** Bars of a variable's values, drawn by hand; the table of the same figures is for screen readers. */
function Histogram({ id, variable }) {
  const state = useFetch(of(id, `histogram?variable=${encodeURIComponent(variable.name)}`));
  return html`<${Fetched} state=${state} what="Counting at low priority…">${(data) => {
    const most = Math.max(1, ...data.counts);
    const width = 100 / Math.max(1, data.counts.length);
    const text = `${count(data.count)} values from ${number(data.min)} to ${number(data.max)}`;
    return html`<figure class="histogram">
      <svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label=${`Histogram: ${text}`}>
        ${data.counts.map((n, i) => html`<rect key=${i} x=${i * width} width=${width * 0.9} y=${30 - (30 * n) / most} height=${(30 * n) / most}>
          <title>${`${number(data.edges[i])} to ${number(data.edges[i + 1])}: ${count(n)}`}</title></rect>`)}</svg>
      <${Facts} items=${[
        ["Values", count(data.count)], ["Least", number(data.min)], ["Most", number(data.max)], ["Mean", number(data.mean)],
        ["Deviation", number(data.std)], data.non_finite > 0 && ["Not finite", count(data.non_finite)],
        data.examined < data.count && ["Counted of them", count(data.examined)],
      ]} /></figure>`;
  }}<//>`;
}

function Variable({ id, one }) {
  const [open, setOpen] = useState(false);
  return html`<span class="mono">${one.name}</span> <${Button} pressed=${open} label=${`Histogram of ${one.name}`} onClick=${() => setOpen(!open)}>Histogram<//>
    ${open && html`<${Histogram} id=${id} variable=${one} />`}`;
}

export function ResourcesPanels({ id, steps }) {
  const state = useFetch(of(id, `resources?seen=${steps}`));
  return html`<${Panel} title="Variables" note=${state.data ? cut(state.data) : ""} flush><${Fetched} state=${state}>${(data) => html`
      <${Table} caption="Variables" rows=${data.variables} rowKey=${(one) => one.name} empty="No variables." limit=${50} columns=${[
        { key: "name", label: "Variable", head: true, render: (one) => html`<${Variable} id=${id} one=${one} />` },
        { key: "dtype", label: "Type" },
        { key: "shape", label: "Shape", value: (one) => shape(one.shape) },
        { key: "bytes", label: "Bytes", num: true, render: (one) => bytes(one.bytes) },
      ]} />`}<//><//>
    <${Panel} title="Queues and other resources" flush><${Fetched} state=${state}>${(data) => html`
      <${Table} caption="Queues and other resources" rows=${[...data.queues, ...data.others]} rowKey=${(one) => `${one.kind} ${one.name}`} empty="None." limit=${50} columns=${[
        { key: "name", label: "Name", head: true, render: (one) => html`<span class="mono">${one.name}</span>` },
        { key: "kind", label: "Kind" },
        { key: "size", label: "Fill", num: true, render: (one) => (one.capacity > 0
          ? html`<${Bar} value=${one.size} max=${one.capacity} label=${`Fill of ${one.name}`} text=${`${count(one.size)} of ${count(one.capacity)}`} />` : count(one.size)) },
        { key: "bytes", label: "Bytes", num: true, render: (one) => bytes(one.bytes) },
      ]} />`}<//><//>`;
}
