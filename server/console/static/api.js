// Calls of the server: every URL is relative to the page, so they work under any prefix of a proxy.
import { useCallback, useEffect, useRef, useState } from "./ui.js";

const ROOT = new URL("../", document.baseURI); // the page is at <prefix>/console/

/** The absolute URL of `path`, which is relative to the server's root: "v1/models". */
export const urlOf = (path) => new URL(path, ROOT).href;

/** An answer that is no success; `message` is a sentence, `status` 0 if the server was not reached. */
export class ApiError extends Error {
  constructor(status, code, message, requestId = "") {
    super(message);
    Object.assign(this, { status, code, requestId });
  }
}

const listeners = new Set();
let logins = 0; // in this page; a call that began before the last one may be refused after it
/** Calls `listener` whenever a call was refused because nobody is logged in; returns the end of it. */
export function onLoginNeeded(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** One call; returns the Response of a success and raises ApiError otherwise. */
export async function request(path, { method = "GET", body, headers = {}, signal, form } = {}) {
  const options = {
    method, signal, cache: "no-store", credentials: "same-origin", redirect: "error",
    headers: { "X-Runstep-Console": "1", ...headers },
  };
  if (body !== undefined) {
    options.headers["Content-Type"] ??= "application/json";
    options.body = typeof body === "string" ? body : JSON.stringify(body);
  }
  const begun = logins;
  let response;
  try {
    response = await fetch(urlOf(path), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "UNREACHABLE", "The server does not answer. It may have stopped, or the connection is gone.");
  }
  if (response.ok) return response;
  const error = await errorOf(response);
  // A wrong credential is the login form's to report.
  if (response.status === 401 && !form && begun === logins) listeners.forEach((listener) => listener(error));
  throw error;
}

async function errorOf(response) {
  const text = await response.text().catch(() => "");
  let body = {};
  try {
    body = JSON.parse(text) ?? {};
  } catch {
    // A proxy's page, for example; its status says what there is to say.
  }
  const said = typeof body.error === "string" ? body.error : "";
  const message = said || `The server answered ${response.status} ${response.statusText}`.trim();
  return new ApiError(response.status, body.code ?? "", message, body.request_id ?? "");
}

/** One call whose answer is JSON. */
export async function call(path, options) {
  const response = await request(path, options);
  const text = await response.text();
  return text === "" ? {} : JSON.parse(text);
}

/** Logs in with a key or a token, which is sent in the body and kept nowhere in the page. */
export async function login(credential) {
  await call("console/api/login", { method: "POST", body: { credential }, form: true });
  logins += 1;
}

export const logout = () => call("console/api/logout", { method: "POST", body: {} });

/**
 * What a GET answers: {data, error, loading, reload}. `every` repeats it after so many seconds while
 * the page is visible. While a repetition runs, or if it fails, `data` stays the last answer.
 * A `path` of null calls nothing.
 */
export function useFetch(path, { every = 0 } = {}) {
  const [state, setState] = useState({ data: null, error: null, loading: path !== null });
  const [turn, setTurn] = useState(0);
  const shown = useRef(null);
  useEffect(() => {
    if (path === null) return undefined;
    const control = new AbortController();
    const keep = shown.current === path;
    shown.current = path;
    setState((old) => ({ data: keep ? old.data : null, error: keep ? old.error : null, loading: true }));
    let timer;
    const later = () => {
      if (every && !control.signal.aborted) timer = setTimeout(ask, every * 1000);
    };
    const ask = async () => {
      if (document.hidden) return later();
      try {
        const data = await call(path, { signal: control.signal });
        if (!control.signal.aborted) setState({ data, error: null, loading: false });
      } catch (error) {
        if (!control.signal.aborted) setState((old) => ({ data: old.data, error, loading: false }));
      }
      return later();
    };
    ask();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [path, every, turn]);
  return { ...state, reload: useCallback(() => setTurn((n) => n + 1), []) };
}

/** Saves bytes or text as a file of the reader's. */
export function saveFile(name, content, type = "application/json") {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
