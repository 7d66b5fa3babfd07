// The versions of models as rows of tables, and the state of one with the progress of its load.
import { Bar, Chip } from "./components.js";
import { bytes, duration } from "./format.js";
import { html } from "./ui.js";

/** One row for each version, or one for a model that has none. */
export function versionRows(models) {
  return models.flatMap((model) => {
    const labels = Object.entries(model.labels ?? {});
    const versions = model.versions.length ? model.versions : [{ version: null, state: "NONE" }];
    return versions.map((one) => ({
      ...one,
      name: model.name, key: `${model.name} ${one.version}`,
      query: one.version === null ? {} : { version: one.version },
      labels: labels.filter(([, version]) => String(version) === String(one.version)).map(([label]) => label),
    }));
  });
}

export function ModelState({ row }) {
  const { progress, error } = row;
  return html`<div class="stack-tight"><${Chip} state=${row.state} kind=${error ? "bad" : undefined} />
    ${progress && (progress.total_bytes
      ? html`<${Bar} value=${progress.done_bytes} max=${progress.total_bytes} label=${`Load of ${row.name}`}
          text=${`${bytes(progress.done_bytes)} of ${bytes(progress.total_bytes)}`} />`
      : html`<span class="muted small">for ${duration(progress.seconds)}</span>`)}
    ${error && html`<span class="small bad-text">${error}</span>`}</div>`;
}
