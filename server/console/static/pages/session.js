// One session: its state, the form of a step, what it holds, its steps, and how it is ended.
import { call, useFetch } from "../api.js";
import { Button, Chip, ErrorNote, Facts, Fetched, PageHead, Panel, notify } from "../components.js";
import { bytes, count, time } from "../format.js";
import { go, link } from "../router.js";
import { ExtendForm } from "../session/extend_form.js";
import { Lease } from "../session/lease.js";
import { GraphPanel, ResourcesPanels } from "../session/session_state.js";
import { StepsPanels } from "../session/session_steps.js";
import { signaturesOf, useMetadata } from "../session/signatures.js";
import { StepForm } from "../session/step_form.js";
import { keepTrace } from "../timeline/step_trace.js";
import { html } from "../ui.js";
import { CloseButton } from "./sessions.js";

function Model({ model }) {
  if (!model) return "none: an empty graph at first";
  if (!model.name) return html`<span class="mono">${model.export_dir}</span>`;
  return html`<a href=${link("models", model.name)}>${model.name}</a> ${model.version ?? ""}`;
}

function KeepAlive({ id, reload }) {
  const renew = async () => {
    try {
      await call(`v1/sessions/${encodeURIComponent(id)}:keepAlive`, { method: "POST", body: {} });
      notify("The lease is renewed.");
      reload();
    } catch (error) {
      notify(error.message, "bad");
    }
  };
  return html`<${Button} onClick=${renew}>Keep alive<//>`;
}

function Steps({ id, session, reload }) {
  const metadata = useMetadata(session.model?.name ? session.model : null);
  const traced = (answer, what) => {
    keepTrace(answer, what);
    go("timeline");
  };
  if (metadata.loading && !metadata.data) return html`<${Fetched} state=${metadata} />`;
  return html`${metadata.error && html`<p class="muted">The model's signatures are not known: ${metadata.error.message}</p>`}
    <${StepForm} signatures=${signaturesOf(metadata.data)} open=${() => id} onTrace=${traced} onDone=${reload} />`;
}

function Body({ id, session, reload }) {
  return html`<${Panel} title="State"><${Facts} items=${[
      ["State", html`<${Chip} state=${session.state} />`],
      ["Lease", html`<${Lease} session=${session} />`],
      ["Model", html`<${Model} model=${session.model} />`],
      session.owner && ["Owner", session.owner],
      ["Thread pools", session.thread_pools.join(", ")],
      ["Graph version", count(session.graph_version)],
      ["Steps", count(session.steps)],
      ["Bytes of its own", bytes(session.bytes_held)],
      ["Weights", session.shared_weights ? "shared with the model" : "its own"],
      ["Last used", time(session.last_used_at)],
    ]} /><//>
    <div class="grid">
      <${Panel} title="Run a step"><${Steps} id=${id} session=${session} reload=${reload} /><//>
      <div class="stack">
        <${Panel} title="Extend the graph"><${ExtendForm} id=${id} version=${session.graph_version} onDone=${reload} /><//>
        <${GraphPanel} id=${id} version=${session.graph_version} />
      </div>
    </div>
    <${StepsPanels} id=${id} session=${session} reload=${reload} />
    <${ResourcesPanels} id=${id} steps=${session.steps} />`;
}

export default function Session({ params: { id } }) {
  const state = useFetch(`console/api/sessions/${encodeURIComponent(id)}`, { every: 2 });
  const { data, error, reload } = state;
  const gone = error?.status === 404 || error?.status === 410;
  const head = html`<${PageHead} title=${data?.name || "Session"} crumb=${["Sessions", link("sessions")]}>
      ${data && !gone && html`<${KeepAlive} id=${id} reload=${reload} /><${CloseButton} session=${data} done=${() => go("sessions")} />`}<//>
    <p class="mono muted">${id}</p>`;
  if (gone) {
    return html`${head}<${ErrorNote} error=${error} title="This session is not open." />
      <p><a href=${link("sessions")}>To the open sessions</a></p>`;
  }
  return html`${head}<${Fetched} state=${state}>${(session) => html`<${Body} id=${id} session=${session} reload=${reload} />`}<//>`;
}
