// The steps of a session that run now, each with a button that cancels it, and the last ones.
import { call } from "../api.js";
import { Chip, ConfirmButton, Panel, Table } from "../components.js";
import { duration, time } from "../format.js";
import { html } from "../ui.js";

const WHAT = { key: "what", label: "Step", head: true, render: (one) => html`<span class="mono">${one.what}</span>` };
const POOL = { key: "pool", label: "Pool", render: (one) => html`<span class="nowrap">${one.pool}</span>` };
const REQUEST = { key: "request_id", label: "Request", render: (one) => html`<span class="mono small">${one.request_id}</span>` };

function CancelStep({ id, step, done }) {
  return html`<${ConfirmButton} danger label=${`Cancel step ${step.request_id}`} done="The step is cancelled."
    confirm=${{ title: "Cancel this step?", body: "Its caller receives the code CANCELLED; the session stays open.", verb: "Cancel the step" }}
    action=${async () => {
      await call(`v1/sessions/${encodeURIComponent(id)}:cancel`, { method: "POST", body: { request_id: step.request_id } });
      done();
    }}>Cancel step<//>`;
}

export function StepsPanels({ id, session, reload }) {
  return html`<${Panel} title="Running steps" flush>
      <${Table} caption="Running steps" rows=${session.running} rowKey=${(one) => one.request_id} empty="No step is running." columns=${[
        WHAT, POOL,
        { key: "seconds", label: "Since", num: true, render: (one) => duration(one.seconds) }, REQUEST,
        { key: "cancel", label: "", sort: false, render: (one) => html`<${CancelStep} id=${id} step=${one} done=${reload} />` },
      ]} /><//>
    <${Panel} title="Last steps" flush>
      <${Table} caption="Last steps" rows=${session.last_steps} rowKey=${(one) => `${one.at} ${one.request_id}`} empty="No step has run yet." limit=${20} columns=${[
        WHAT, { key: "code", label: "Code", render: (one) => html`<${Chip} state=${one.code} kind=${one.code === "OK" ? "good" : "bad"} />` },
        POOL,
        { key: "at", label: "When", num: true, render: (one) => time(one.at) },
        { key: "wait_seconds", label: "Wait", num: true, render: (one) => duration(one.wait_seconds) },
        { key: "run_seconds", label: "Run", num: true, render: (one) => duration(one.run_seconds) }, REQUEST,
      ]} /><//>`;
}
