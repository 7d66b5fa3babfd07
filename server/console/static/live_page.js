// What all live pages have in common: the first wait, a lost connection, and a button that holds.
import { Button, ErrorNote, Loading } from "./components.js";
import { restart, useLive } from "./live.js";
import { html, useRef, useState } from "./ui.js";

/** {live, hold}: the figures (null before the first) and a button that stops them from changing. */
export function useHeldLive() {
  const live = useLive();
  const [held, setHeld] = useState(false);
  const kept = useRef(null);
  if (!held) kept.current = live.latest && { latest: live.latest, history: live.history };
  const hold = html`<${Button} pressed=${held} onClick=${() => setHeld(!held)}>Hold figures<//>`;
  return { live: kept.current, hold, status: live.status, error: live.error };
}

/** What stands in place of the figures, or above them: waiting, or why there are none. */
export function LiveState({ live, status, error }) {
  if (status === "lost" && error && error.status !== 401) {
    return html`<${ErrorNote} error=${error} retry=${restart} title=${live ? "These figures are old." : "There are no figures."} />`;
  }
  if (!live) return html`<${Loading} what="Waiting for the first figures…" />`;
  return null;
}
