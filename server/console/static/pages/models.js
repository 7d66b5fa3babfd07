// All models and their versions, with what an administrator may change.
import { PageHead, Panel, Table } from "../components.js";
import { count } from "../format.js";
import { LiveState, useHeldLive } from "../live_page.js";
import { ModelState, versionRows } from "../model_rows.js";
import { link } from "../router.js";
import { LoadModel, MoveLabel, ReloadModel, UnloadModel } from "../steering.js";
import { html } from "../ui.js";

export default function Models() {
  const held = useHeldLive();
  const models = held.live?.latest.models ?? [];
  return html`<${PageHead} title="Models"><${LoadModel} /><//><${LiveState} ...${held} />
    ${held.live && html`<${Panel} flush title="Versions">
      <${Table} caption="Versions of models" rows=${versionRows(models)} rowKey=${(row) => row.key} empty="No model is configured" columns=${[
        { key: "name", label: "Model", head: true, render: (row) => html`<a href=${link("models", row.name, row.query)}>${row.name}</a>` },
        { key: "version", label: "Version", num: true, render: (row) => row.version ?? "–" },
        { key: "state", label: "State", render: (row) => html`<${ModelState} row=${row} />` },
        { key: "labels", label: "Labels", value: (row) => row.labels.join(", ") },
        { key: "in_flight", label: "In flight", num: true, render: (row) => count(row.in_flight) },
      ]} /><//>
    <${Panel} flush title="Change" note="Each change is confirmed. What served goes on serving if it fails.">
      <${Table} caption="Changes of models" rows=${models} rowKey=${(model) => model.name} empty="No model is configured" columns=${[
        { key: "name", label: "Model", head: true },
        { key: "actions", label: "", sort: false, render: (model) => html`<div class="row end"><${Steering} model=${model} /></div>` },
      ]} /><//>`}`;
}

/** The changes of one model. */
export function Steering({ model, done }) {
  const serving = model.versions.filter((one) => one.state === "AVAILABLE").map((one) => Number(one.version));
  return html`<${MoveLabel} name=${model.name} versions=${serving} labels=${model.labels ?? {}} done=${done} />
    <${ReloadModel} name=${model.name} done=${done} /><${UnloadModel} name=${model.name} done=${done} />`;
}
