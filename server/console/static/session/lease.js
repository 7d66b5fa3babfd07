// How long a session's lease still lasts, counted down each second.
import { duration } from "../format.js";
import { html, useEffect, useState } from "../ui.js";

const readers = new Set();
let timer = 0;

/** The seconds since 1970, drawn again each second; one timer for all readers. */
export function useNow() {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    readers.add(setNow);
    timer ||= setInterval(() => readers.forEach((set) => set(Date.now() / 1000)), 1000);
    return () => {
      readers.delete(setNow);
      if (readers.size) return;
      clearInterval(timer);
      timer = 0;
    };
  }, []);
  return now;
}

export const secondsLeft = (session, now) => Date.parse(session.expires_at) / 1000 - now;

export function Lease({ session }) {
  const left = secondsLeft(session, useNow());
  return html`<span class=${left < 30 ? "lease short" : "lease"}>${left > 0 ? duration(Math.round(left)) : "run out"}</span>`;
}
