// The server at a glance.
import { PageHead } from "../components.js";
import { html } from "../ui.js";

export default function Overview() {
  return html`<${PageHead} title="Overview" />`;
}
