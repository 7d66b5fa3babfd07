// The stream of the server's figures: one connection, open only while a visible page shows them.
import { ApiError, request } from "./api.js";
import { useEffect, useState } from "./ui.js";

export const KEPT = 180; // messages, one a second

const live = { status: "closed", latest: null, history: [], error: null };
const readers = new Set();
let control = null;
let timer = 0;
let failures = 0;

const changed = () => readers.forEach((reader) => reader());

function set(status, error = null) {
  live.status = status;
  live.error = error;
  changed();
}

function take(message) {
  live.latest = message;
  live.history = [...live.history.slice(1 - KEPT), message];
  failures = 0;
  set("open");
}

// The server-sent events of a response: https://html.spec.whatwg.org/#event-stream-interpretation
async function read(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split(/\r?\n\r?\n/);
    rest = events.pop();
    for (const event of events) {
      const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
      if (lines.length) take(JSON.parse(lines.map((line) => line.slice(5)).join("\n")));
    }
  }
}

async function open() {
  if (control || !readers.size || document.hidden) return;
  const mine = new AbortController();
  control = mine;
  if (live.status !== "lost") set("connecting");
  let error = new ApiError(0, "ENDED", "The server has ended its stream of figures; it may be draining.");
  try {
    await read(await request("console/api/events", {
      signal: mine.signal, headers: { Accept: "text/event-stream" },
    }));
  } catch (raised) {
    error = raised;
  }
  if (control !== mine) return; // closed on purpose
  control = null;
  failures += 1;
  set("lost", error);
  // A login starts the stream again; other errors are tried again, ever more rarely.
  if (error?.status !== 401) timer = setTimeout(open, Math.min(15, 2 ** failures) * 1000);
}

function close() {
  clearTimeout(timer);
  control?.abort();
  control = null;
}

/** Starts the stream anew: after a login, or because the reader wants it now. */
export function restart() {
  close();
  failures = 0;
  open();
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) open();
  else if (control) {
    close();
    live.status = "closed";
  }
});

/** {status, latest, history, error}; the component is drawn again at each message. */
export function useLive() {
  const [, draw] = useState(0);
  useEffect(() => {
    const reader = () => draw((n) => n + 1);
    readers.add(reader);
    open();
    return () => {
      readers.delete(reader);
      // A page that follows at once takes the connection over.
      setTimeout(() => readers.size || close(), 500);
    };
  }, []);
  return live;
}
