// What pages are made of. Text from the server is only ever a text node or an attribute's value.
import { html, useLayoutEffect, useMemo, useRef, useState } from "./ui.js";

let made = 0;
/** An id for labels, which no other element has. */
export const useId = (prefix = "id") => useMemo(() => `${prefix}-${(made += 1)}`, []);

/** The head of a page. `crumb` is [text, href] of the page above; `children` are its actions. */
export function PageHead({ title, crumb, children }) {
  return html`<div class="page-head">
    ${crumb && html`<div class="crumb"><a href=${crumb[1]}>${crumb[0]}</a> /</div>`}
    <h1 tabindex="-1">${title}</h1>
    ${children && html`<div class="actions">${children}</div>`}
  </div>`;
}

/** A box with a heading. `flush` is for tables, which reach its edges. */
export function Panel({ title, actions, flush, children, note }) {
  const id = useId("panel");
  return html`<section class="panel" aria-labelledby=${id}>
    <header><h2 id=${id}>${title}</h2>${note && html`<span class="muted small">${note}</span>`}
      ${actions && html`<div class="actions">${actions}</div>`}</header>
    <div class=${flush ? "body flush" : "body"}>${children}</div>
  </section>`;
}

/** `items` are [name, value] pairs; falsy items are left out. */
export const Facts = ({ items, big }) => html`<dl class=${big ? "facts big" : "facts"}>
  ${items.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

const KIND_OF_STATE = {
  AVAILABLE: "good", SERVING: "good", OPEN: "good", READY: "good", ACTIVE: "good", OK: "good", IDLE: "good",
  LOADING: "busy", RUNNING: "busy", START: "warn", UNLOADING: "warn", DRAINING: "warn", EXPIRED: "warn",
  CANCELLED: "warn", DEADLINE_EXCEEDED: "bad", ERROR: "bad", FAILED: "bad", CLOSED: "",
};

/** A state as a dot and its word; `kind` (good, warn, bad, busy) is known for the server's states. */
export function Chip({ state, kind }) {
  const text = String(state ?? "–");
  return html`<span class=${`chip ${kind ?? KIND_OF_STATE[text.toUpperCase()] ?? ""}`}><i></i>${text}</span>`;
}

/** A share of `max` as a bar with its text. */
export const Bar = ({ value, max, label, text }) => html`<div class="bar">
  <progress value=${Math.min(value, max)} max=${max || 1} aria-label=${label}></progress><span>${text}</span>
</div>`;

export const Empty = ({ title, children }) =>
  html`<div class="empty"><p>${title}</p>${children && html`<p class="small">${children}</p>`}</div>`;

export const Loading = ({ what = "Loading…" }) => html`<div class="empty" role="status">${what}</div>`;

/** An ApiError as a sentence with what may be done about it. */
export function ErrorNote({ error, retry, title }) {
  if (!error) return null;
  return html`<div class="note bad" role="alert">
    ${title && html`<p><strong>${title}</strong></p>`}
    <p>${error.message}</p>
    ${(error.code || error.requestId) && html`<p class="muted small">${error.code}${error.requestId && ` · request ${error.requestId}`}</p>`}
    ${retry && html`<p><button class="button" onClick=${retry}>Try again</button></p>`}
  </div>`;
}

/** What a useFetch() shows until there is data: `children` is a function of the data. */
export function Fetched({ state, what, children }) {
  const { data, error, reload } = state;
  if (data === null) return error ? html`<${ErrorNote} error=${error} retry=${reload} />` : html`<${Loading} what=${what} />`;
  return html`${error && html`<${ErrorNote} error=${error} title="The figures below are old." retry=${reload} />`}${children(data)}`;
}

/**
 * A table. A column is {key, label, num, value, render, sort}: `value(row)` is what is sorted by (by
 * default row[key]), `render(row)` what is shown; `sort: false` takes the sorting away; `head: true`
 * makes the cell the row's heading. `order` is [key, "ascending" or "descending"] at first. Where
 * there is no room for more than three columns, rows become cards; a `wide` table has many. `rowKey(row)` names
 * a row for good.
 */
export function Table({ columns, rows, rowKey, caption, empty = "None", order, limit = 200, wide }) {
  const [by, setBy] = useState(order ?? null);
  const [all, setAll] = useState(false);
  const column = by && columns.find((one) => one.key === by[0]);
  const valueOf = (one, row) => (one.value ? one.value(row) : row[one.key]);
  const sorted = useMemo(() => {
    if (!column) return rows;
    const turn = by[1] === "ascending" ? 1 : -1;
    return [...rows].sort((a, b) => turn * compare(valueOf(column, a), valueOf(column, b)));
  }, [rows, by]);
  if (!rows.length) return html`<${Empty} title=${empty} />`;
  const turnTo = (one) => () =>
    setBy([one.key, by?.[0] === one.key ? (by[1] === "ascending" ? "descending" : "ascending") : one.num ? "descending" : "ascending"]);
  const shown = all ? sorted : sorted.slice(0, limit);
  return html`<div class="table-room"><table class=${wide ? "cards wide" : columns.length > 3 || columns.some((one) => one.label === "") ? "cards" : ""}>
      ${caption && html`<caption class="visually-hidden">${caption}</caption>`}
      <thead><tr>${columns.map((one) => html`<th key=${one.key} scope="col" class=${one.num ? "num" : ""}
        aria-sort=${by?.[0] === one.key ? by[1] : null}>${one.label === "" ? html`<span class="visually-hidden">Actions</span>`
          : one.sort === false ? one.label : html`<button type="button" onClick=${turnTo(one)}>${one.label}</button>`}</th>`)}</tr></thead>
      <tbody>${shown.map((row, i) => html`<tr key=${rowKey ? rowKey(row) : i}>
        ${columns.map((one) => {
          const shown = one.render ? one.render(row) : valueOf(one, row);
          const kind = `${one.num ? "num" : ""}${shown === "" || shown === null || shown === undefined ? " empty-cell" : ""}`;
          return one.head
            ? html`<th key=${one.key} scope="row" class=${kind} data-label=${one.label}><div>${shown}</div></th>`
            : html`<td key=${one.key} class=${kind} data-label=${one.label}><div>${shown}</div></td>`;
        })}</tr>`)}</tbody>
    </table></div>
    ${sorted.length > shown.length && html`<div class="empty"><button class="button" onClick=${() => setAll(true)}>
      Show all ${sorted.length} rows</button></div>`}`;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** A labelled field; `children` is a function of the attributes that its control takes. */
export function Field({ label, hint, children }) {
  const id = useId("field");
  return html`<div class="field"><label for=${id}>${label}</label>
    ${children({ id, "aria-describedby": hint ? `${id}-hint` : null })}
    ${hint && html`<span class="hint" id=${`${id}-hint`}>${hint}</span>`}</div>`;
}

/**
 * A button for `onClick`. With `why` it cannot be used and says so on itself: "needs admin.enabled".
 * It can still be focused, so that a reader of the keyboard meets the reason too.
 */
export function Button({ children, onClick, why, kind = "", type = "button", pressed, busy, label }) {
  const off = Boolean(why) || busy;
  return html`<button type=${type} class=${`button ${kind}${pressed ? " pressed" : ""}`} aria-disabled=${off ? "true" : null}
    aria-pressed=${pressed === undefined ? null : String(pressed)} aria-label=${label ? (why ? `${label}: ${why}` : label) : null}
    onClick=${(event) => (off ? event.preventDefault() : onClick?.(event))}>
    ${children}${why && html`<span class="why">${why}</span>`}</button>`;
}

/**
 * A button that acts only after a confirmation: `confirm` is {title, body, verb}. `action` may
 * return a promise; its error stands in the dialog, and `done` is the notice after it (text, or a
 * function of the result). `fields(values, set)` may show inputs whose values `action` gets.
 */
export function ConfirmButton({ children, confirm, action, done, why, kind, danger, fields, initial, label }) {
  const [open, setOpen] = useState(false);
  return html`<${Button} why=${why} kind=${kind ?? (danger ? "danger" : "")} label=${label} onClick=${() => setOpen(true)}>${children}<//>
    ${open && html`<${Confirmation} ...${{ confirm, action, done, danger, fields, initial }} close=${() => setOpen(false)} />`}`;
}

function Confirmation({ confirm, action, done, danger, fields, initial, close }) {
  const dialog = useRef(null);
  const id = useId("dialog");
  const [values, setValues] = useState(initial ?? {});
  const [state, setState] = useState({ busy: false, error: null });
  useLayoutEffect(() => {
    const before = document.activeElement;
    dialog.current.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  const submit = async (event) => {
    event.preventDefault();
    if (state.busy) return;
    setState({ busy: true, error: null });
    try {
      const result = await action(values);
      close();
      if (done) notify(typeof done === "function" ? done(result) : done);
    } catch (error) {
      setState({ busy: false, error });
    }
  };
  return html`<dialog ref=${dialog} aria-labelledby=${id} onClose=${close}>
    <form class="stack" onSubmit=${submit}>
      <h2 id=${id}>${confirm.title}</h2>
      ${confirm.body && html`<p>${confirm.body}</p>`}
      ${fields?.(values, (change) => setValues((old) => ({ ...old, ...change })))}
      <${ErrorNote} error=${state.error} />
      <div class="row end">
        <${Button} onClick=${() => dialog.current.close()}>Cancel<//>
        <${Button} type="submit" kind=${danger ? "danger" : "primary"} busy=${state.busy}>${state.busy ? "Working…" : confirm.verb}<//>
      </div>
    </form>
  </dialog>`;
}

let show = () => {};
/** Shows a sentence for some seconds; screen readers read it. `kind` is good, warn or bad. */
export const notify = (text, kind = "good") => show({ text, kind, key: (made += 1) });

export function Notices() {
  const [shown, setShown] = useState([]);
  show = (notice) => {
    setShown((old) => [...old.slice(-3), notice]);
    setTimeout(() => setShown((old) => old.filter((one) => one.key !== notice.key)), 6000);
  };
  return html`<div class="notices" role="status">${shown.map(
    (one) => html`<div key=${one.key} class=${`note ${one.kind}`}>${one.text}</div>`)}</div>`;
}

/** Text in a box that scrolls, with a button that copies it. */
export function Code({ text, label }) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      notify("Copied.");
    } catch {
      notify("The browser does not allow copying here.", "warn");
    }
  };
  return html`<div class="stack"><pre class="code-block" tabindex="0" role="region" aria-label=${label}>${text}</pre>
    <div class="row"><${Button} onClick=${copy}>Copy<//></div></div>`;
}

export { Chart, Sparkline } from "./charts.js";
