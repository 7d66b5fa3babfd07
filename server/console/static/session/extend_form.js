// Adds nodes to a session's graph: a GraphDef from a file or as base64.
import { call } from "../api.js";
import { Button, ErrorNote, Field, notify } from "../components.js";
import { html, useState } from "../ui.js";

async function base64Of(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const parts = [];
  for (let at = 0; at < bytes.length; at += 0x8000) parts.push(String.fromCharCode(...bytes.subarray(at, at + 0x8000)));
  return btoa(parts.join(""));
}

export function ExtendForm({ id, version, onDone }) {
  const [state, setState] = useState({ busy: false, error: null });
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    const file = form.elements.file.files[0];
    const text = form.elements.text.value.replace(/\s+/g, "");
    if (state.busy) return;
    if (!file && !text) {
      setState({ busy: false, error: new Error("Choose a file or paste a GraphDef first.") });
      return;
    }
    setState({ busy: true, error: null });
    try {
      const graph_def = file ? await base64Of(file) : text;
      const answer = await call(`v1/sessions/${encodeURIComponent(id)}:extend`, {
        method: "POST", body: { graph_def, graph_version: version },
      });
      form.reset();
      setState({ busy: false, error: null });
      notify(`The graph has version ${answer.graph_version} now.`);
      onDone();
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<form class="stack" onSubmit=${submit} aria-label="Extend the graph">
    <div class="grid narrow">
      <${Field} label="GraphDef file" hint="A serialized GraphDef, such as graph.pb.">${(field) => html`<input ...${field} type="file" name="file" />`}<//>
      <${Field} label="or base64">${(field) => html`<textarea ...${field} name="text" rows="2" spellcheck="false"></textarea>`}<//>
    </div>
    <${ErrorNote} error=${state.error} />
    <div class="row"><${Button} type="submit" busy=${state.busy}>${state.busy ? "Extending…" : "Extend the graph"}<//>
      <span class="muted small">It is refused if the graph is no longer of version ${version}.</span></div>
  </form>`;
}
