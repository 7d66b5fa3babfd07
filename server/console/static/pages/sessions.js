// The open sessions, a form that opens one by its id, and a form that opens a new one.
import { call, useFetch } from "../api.js";
import { Button, Chip, ConfirmButton, ErrorNote, Fetched, Field, PageHead, Panel, Table, notify } from "../components.js";
import { bytes, count, time } from "../format.js";
import { go, link } from "../router.js";
import { Lease } from "../session/lease.js";
import { html, useState } from "../ui.js";

const SHORT = 24; // characters that stay on one line
const masked = (session) => session.masked;
const modelText = (model) => (!model ? "" : model.name ? `${model.name} ${model.version ?? ""}`.trim() : (model.export_dir ?? ""));

function nameOf(session) {
  const text = html`<span class="mono">${session.session}</span>${session.name && html` <span>${session.name}</span>`}`;
  return masked(session) ? text : html`<a href=${link("sessions", session.session)}>${text}</a>`;
}

const COLUMNS = (reload) => [
  { key: "session", label: "Session", head: true, render: nameOf },
  { key: "state", label: "State", render: (one) => html`<${Chip} state=${one.state} />` },
  { key: "model", label: "Model", value: (one) => modelText(one.model), render: ({ model }) => {
    const text = modelText(model);
    return html`<span class=${text.length < SHORT ? "nowrap" : ""}>${text}</span>`;
  } },
  { key: "owner", label: "Owner", value: (one) => one.owner ?? "" },
  { key: "thread_pools", label: "Pools", value: (one) => one.thread_pools.join(", ") },
  { key: "expires_at", label: "Lease", num: true, render: (one) => html`<${Lease} session=${one} />` },
  { key: "steps", label: "Steps", num: true, render: (one) => count(one.steps) },
  { key: "bytes_held", label: "Bytes", num: true, render: (one) => bytes(one.bytes_held) },
  { key: "last_used_at", label: "Last used", num: true, render: (one) => time(one.last_used_at) },
  { key: "close", label: "", sort: false, render: (one) => !masked(one) && html`<${CloseButton} session=${one} done=${reload} />` },
];

export function CloseButton({ session, done, kind }) {
  const title = session.name || session.session;
  return html`<${ConfirmButton} danger kind=${kind} label=${`Close session ${title}`} done="The session is closed."
    confirm=${{ title: `Close session ${title}?`, body: "Its running steps are cancelled, and its variables are lost.", verb: "Close the session" }}
    action=${async () => {
      await call(`v1/sessions/${encodeURIComponent(session.session)}:close`, { method: "POST", body: {} });
      done();
    }}>Close<//>`;
}

function EnterId() {
  const submit = (event) => {
    event.preventDefault();
    const id = event.target.elements.id.value.trim();
    if (id) go("sessions", id);
  };
  return html`<form class="stack" onSubmit=${submit} aria-label="Open a session by its id">
    <${Field} label="Id of an open session" hint="Listings show whole ids of your own sessions only, and none without authentication.">
      ${(field) => html`<input ...${field} name="id" class="mono" required autocomplete="off" spellcheck="false" />`}<//>
    <div class="row"><${Button} type="submit">Show the session<//></div></form>`;
}

function NewSession() {
  const models = useFetch("v1/models");
  const [chosen, setChosen] = useState(null);
  const [state, setState] = useState({ busy: false, error: null });
  const names = (models.data?.models ?? []).map((one) => one.name);
  const model = chosen ?? names[0] ?? "";
  const submit = async (event) => {
    event.preventDefault();
    if (state.busy) return;
    const { name, lease } = event.target.elements;
    const body = { name: name.value };
    if (model) body.model = model;
    if (lease.value) body.lease_seconds = Number(lease.value);
    setState({ busy: true, error: null });
    try {
      const opened = await call("v1/sessions", { method: "POST", body });
      notify("The session is open.");
      go("sessions", opened.session);
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<form class="stack" onSubmit=${submit} aria-label="Open a new session">
    <div class="grid narrow">
      <${Field} label="Model">${(field) => html`<select ...${field} value=${model} onChange=${(event) => setChosen(event.target.value)}>
        ${names.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}
        <option value="">None: an empty graph</option></select>`}<//>
      <${Field} label="Name" hint="For listings.">${(field) => html`<input ...${field} name="name" autocomplete="off" />`}<//>
      <${Field} label="Lease in seconds" hint="Idle time until it is closed; empty is the server's.">${(field) => html`<input ...${field} name="lease" type="number" min="1" />`}<//>
    </div>
    <${ErrorNote} error=${models.error} title="The models are not known." /><${ErrorNote} error=${state.error} />
    <div class="row"><${Button} type="submit" kind="primary" busy=${state.busy}>Open a session<//></div></form>`;
}

export default function Sessions() {
  const state = useFetch("console/api/sessions", { every: 2 });
  return html`<${PageHead} title="Sessions" />
    <${Panel} title="Open sessions" flush><${Fetched} state=${state}>${({ sessions }) => html`<${Table} caption="Open sessions"
      columns=${COLUMNS(state.reload).filter((one) => one.key !== "owner" || sessions.some((session) => session.owner))}
      rows=${sessions} rowKey=${(one) => `${one.session} ${one.name}`} empty="No session is open." order=${["last_used_at", "descending"]} />`}<//><//>
    <div class="grid"><${Panel} title="New session"><${NewSession} /><//><${Panel} title="By its id"><${EnterId} /><//></div>`;
}
