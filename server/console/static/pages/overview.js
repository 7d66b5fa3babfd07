// The server at a glance: process, models, and what requests take, live.
import { call } from "../api.js";
import { Bar, Button, Chart, Chip, ConfirmButton, Facts, PageHead, Panel, Table } from "../components.js";
import { bytes, count, duration, number, percent } from "../format.js";
import { LiveState, useHeldLive } from "../live_page.js";
import { adminRefusal, useMe } from "../me.js";
import { ModelState, versionRows } from "../model_rows.js";
import { link } from "../router.js";
import { ages, lines } from "../series.js";
import { html, useState } from "../ui.js";

const GROUPS = [["model", "Model"], ["front", "Front"], ["priority", "Priority"]];
const nameOf = (group) => (row) => row.name || (group === "model" ? "sessions" : "none");

export default function Overview() {
  const held = useHeldLive();
  return html`<${PageHead} title="Overview">${held.hold}<${Drain} phase=${held.live?.latest.phase} /><//>
    <${LiveState} ...${held} />
    ${held.live && html`<${Process} at=${held.live.latest} /><${Requests} ...${held.live} /><${Models} at=${held.live.latest} />`}`;
}

function Drain({ phase }) {
  const me = useMe();
  const why = phase === "draining" ? "is draining" : adminRefusal(me);
  const confirm = {
    title: "Drain this server?", verb: "Drain",
    body: "It takes no new work from now on, finishes the work that it has, and ends. A load balancer stops sending to it because /readyz answers 503. This can't be taken back.",
  };
  return html`<${ConfirmButton} danger why=${why} confirm=${confirm} done="The server drains."
    action=${() => call("console/api/drain", { method: "POST", body: {} })}>Drain<//>`;
}

const share = (value, limit) => (limit
  ? html`<${Bar} value=${value} max=${limit} label="of the limit" text=${`${bytes(value)} of ${bytes(limit)}`} />` : bytes(value));

function Process({ at }) {
  const { process } = at;
  return html`<${Panel} title="Process">
    <${Facts} items=${[
      ["State", html`<${Chip} state=${at.phase} />`],
      ["Up for", duration(Math.floor(at.uptime_seconds))],
      ["Processor", process.cpu_share === null ? "–" : `${percent(process.cpu_share)} of a core`],
      ["Resident memory", share(process.resident_bytes, process.resident_limit_bytes)],
      ["Tensors of steps", share(process.tensor_bytes, process.tensor_limit_bytes)],
      ["Threads", count(process.threads)],
      ["Open sessions", html`<a href="#/sessions">${count(process.sessions_open)}</a>`],
      ["Running steps", count(process.steps_running)],
    ]} /><//>`;
}

function Requests({ latest, history }) {
  const [group, setGroup] = useState("model");
  const rows = (message) => message.requests[group];
  const name = nameOf(group);
  const seconds = ages(history);
  const chart = (value) => lines(history, rows, value, { name });
  const charts = [
    ["Requests per second", (row) => row.per_second, number],
    ["Median latency", (row) => row.p50_seconds, duration],
    ["99th percentile", (row) => row.p99_seconds, duration],
    ["Errors per second", (row) => row.errors_per_second, number],
  ];
  return html`<${Panel} title="Requests" note="last three minutes" actions=${html`<div class="tabs" role="group" aria-label="Group requests by">
      ${GROUPS.map(([key, text]) => html`<${Button} key=${key} pressed=${group === key} onClick=${() => setGroup(key)}>${text}<//>`)}</div>`}>
      <div class="grid charts">${charts.map(([label, value, format]) => html`<div key=${label + group} class="stack"><h3>${label}</h3>
        <${Chart} label=${`${label} by ${group}`} seconds=${seconds} series=${chart(value)} format=${format} /></div>`)}</div>
    <//>
    <${Panel} flush title=${`Requests by ${group}, now`}>
      <${Table} wide caption=${`Requests by ${group}`} rows=${rows(latest)} rowKey=${(row) => row.name} empty="No requests so far" columns=${[
        { key: "name", label: GROUPS.find(([key]) => key === group)[1], head: true, value: name },
        { key: "per_second", label: "Per second", num: true, render: (row) => number(row.per_second) },
        { key: "p50_seconds", label: "p50", num: true, render: (row) => duration(row.p50_seconds) },
        { key: "p99_seconds", label: "p99", num: true, render: (row) => duration(row.p99_seconds) },
        { key: "errors_per_second", label: "Errors per second", num: true, render: (row) => number(row.errors_per_second) },
        { key: "total", label: "In all", num: true, render: (row) => count(row.total) },
        { key: "errors_total", label: "Errors in all", num: true, render: (row) => count(row.errors_total) },
      ]} /><//>`;
}

function Models({ at }) {
  return html`<${Panel} flush title="Models" note=${count(at.models.length)}>
    <${Table} caption="Versions of models" rows=${versionRows(at.models)} rowKey=${(row) => row.key} empty="No model is configured" columns=${[
      { key: "name", label: "Model", head: true, render: (row) => html`<a href=${link("models", row.name, row.query)}>${row.name}</a>` },
      { key: "version", label: "Version", num: true, render: (row) => row.version ?? "–" },
      { key: "state", label: "State", render: (row) => html`<${ModelState} row=${row} />` },
      { key: "labels", label: "Labels", value: (row) => row.labels.join(", ") },
      { key: "in_flight", label: "In flight", num: true, render: (row) => count(row.in_flight) },
    ]} /><//>`;
}
