// The buttons that change which models are served; each is confirmed, and says why it can't be used.
import { call } from "./api.js";
import { ConfirmButton, Field } from "./components.js";
import { adminRefusal, useMe } from "./me.js";
import { html } from "./ui.js";

const repository = (name, verb) =>
  call(`v2/repository/models/${encodeURIComponent(name)}/${verb}`, { method: "POST", body: {} });

/** Serves a model by its name: one that was configured, or a folder of admin.model_folders. */
export function LoadModel({ done }) {
  const confirm = {
    title: "Load a model", verb: "Load",
    body: "The model was configured at the server's start, or its folder is in one of admin.model_folders. It serves when this is done.",
  };
  return html`<${ConfirmButton} kind="primary" why=${adminRefusal(useMe())} confirm=${confirm} initial=${{ name: "" }}
    done=${(name) => `Model ${name} serves.`}
    action=${async ({ name }) => { await repository(name, "load"); done?.(); return name; }}
    fields=${(values, set) => html`<${Field} label="Name">${(field) => html`<input ...${field} required autocomplete="off" spellcheck="false"
      value=${values.name} onInput=${(event) => set({ name: event.target.value })} />`}<//>`}>Load a model<//>`;
}

/** Loads what is new in the folder of a served model. */
export function ReloadModel({ name, done }) {
  const confirm = {
    title: `Load new versions of ${name}?`, verb: "Load",
    body: "Versions that are new in its folder are loaded. Those that the policy no longer wants are unloaded when the new ones serve.",
  };
  return html`<${ConfirmButton} why=${adminRefusal(useMe())} confirm=${confirm} done=${`Model ${name} is up to date.`}
    action=${async () => { await repository(name, "load"); done?.(); }} label=${`Load new versions of ${name}`}>Load new versions<//>`;
}

export function UnloadModel({ name, done }) {
  const confirm = {
    title: `Unload ${name}?`, verb: "Unload",
    body: "All its versions stop serving. Requests that use it now are finished first; later ones are answered with an error.",
  };
  return html`<${ConfirmButton} danger why=${adminRefusal(useMe())} confirm=${confirm} done=${`Model ${name} is unloaded.`}
    action=${async () => { await repository(name, "unload"); done?.(); }} label=${`Unload ${name}`}>Unload<//>`;
}

/** Moves a label, which exists or is new, to one of the versions that serve. */
export function MoveLabel({ name, versions, labels, done }) {
  const known = Object.keys(labels);
  const initial = { label: known[0] ?? "", version: versions.length ? String(Math.max(...versions)) : "" };
  const why = adminRefusal(useMe()) || (versions.length ? "" : "no version serves");
  const confirm = {
    title: `Move a label of ${name}`, verb: "Move",
    body: "Requests that name the label go to the chosen version from the next one on.",
  };
  return html`<${ConfirmButton} why=${why} confirm=${confirm} initial=${initial} label=${`Move a label of ${name}`}
    done=${([label, version]) => `Label ${label} leads to version ${version}.`}
    action=${async ({ label, version }) => {
      await call(`console/api/models/${encodeURIComponent(name)}:label`, { method: "POST", body: { label, version: Number(version) } });
      done?.();
      return [label, version];
    }}
    fields=${(values, set) => html`<${Field} label="Label" hint=${known.length ? `There are: ${known.map((label) => `${label} → ${labels[label]}`).join(", ")}` : "The model has no label so far."}>
        ${(field) => html`<input ...${field} required autocomplete="off" spellcheck="false" value=${values.label} onInput=${(event) => set({ label: event.target.value })} />`}<//>
      <${Field} label="Version">${(field) => html`<select ...${field} value=${values.version} onChange=${(event) => set({ version: event.target.value })}>
        ${versions.map((version) => html`<option key=${version} value=${version}>${version}</option>`)}</select>`}<//>`}>Move a label<//>`;
}
