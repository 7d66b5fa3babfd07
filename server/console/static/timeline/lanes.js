// A trace as lanes: drawn as SVG, moved and zoomed by mouse, keyboard and buttons.
import { Button } from "../components.js";
import { duration } from "../format.js";
import { html, useEffect, useRef, useState } from "../ui.js";

const ROW = 20; // pixels
const LABEL = 18;
const AXIS = 22;
const CHARACTER = 6.8; // of the text in spans, about
const STEP = 0.2; // of what is shown, by an arrow key
const ZOOM = 1.6;
const NARROWEST = 100; // nanoseconds
const COLOURS = 6;

/** The same colour for an op in every trace. */
function colourOf(op) {
  let sum = 7;
  for (const letter of op) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return `series-${(sum % COLOURS) + 1}`;
}

/** [from, to] inside [0, end], with its width kept as far as it goes. */
function within([from, to], end) {
  const width = Math.min(end, Math.max(Math.min(NARROWEST, end), to - from));
  const start = Math.min(Math.max(0, from), end - width);
  return [start, start + width];
}

export const zoomed = ([from, to], end, factor, at = (from + to) / 2) =>
  within([at - (at - from) / factor, at + (to - at) / factor], end);
export const moved = ([from, to], end, share) => within([from + share * (to - from), to + share * (to - from)], end);

const KEYS = {
  ArrowLeft: (view, end) => moved(view, end, -STEP),
  ArrowRight: (view, end) => moved(view, end, STEP),
  "+": (view, end) => zoomed(view, end, ZOOM),
  "=": (view, end) => zoomed(view, end, ZOOM),
  "-": (view, end) => zoomed(view, end, 1 / ZOOM),
  Home: (view, end) => within([0, view[1] - view[0]], end),
  End: (view, end) => within([end - (view[1] - view[0]), end], end),
  0: (view, end) => [0, end],
};

/** Round times for the axis: about one in 90 pixels. */
function ticks([from, to], width) {
  const rough = ((to - from) * 90) / width;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const marks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) marks.push(at);
  return marks;
}

/** The spans of a lane that are in view; of those in one pixel of a row only the first. */
function visible(lane, [from, to], width) {
  const scale = width / (to - from);
  const last = [];
  const shown = [];
  for (const span of lane.spans) {
    if (span.end < from || span.start > to) continue;
    const x = Math.max(-1, (span.start - from) * scale);
    const until = Math.min(width + 1, (span.end - from) * scale);
    if (until - x < 1 && last[span.row] === Math.floor(x)) continue;
    last[span.row] = Math.floor(x);
    shown.push({ span, x, width: Math.max(1, until - x) });
  }
  return shown;
}

function Lane({ lane, top, view, width, chosen, choose }) {
  return html`<g transform=${`translate(0 ${top})`}>
    <text class="lane-name" x="2" y="13">${lane.name}</text>
    ${visible(lane, view, width).map(({ span, x, width: wide }) => html`<g key=${`${span.start} ${span.row} ${span.node}`}
      class=${`span ${colourOf(span.op)}${span === chosen ? " chosen" : ""}`} onClick=${() => choose(span)}>
      <rect x=${x} y=${LABEL + span.row * ROW} width=${wide} height=${ROW - 2}><title>${`${span.node} (${span.op}) ${duration((span.end - span.start) / 1e9)}`}</title></rect>
      ${wide > 4 * CHARACTER && html`<text x=${Math.max(2, x + 4)} y=${LABEL + span.row * ROW + 13}>${span.op.slice(0, Math.floor((wide - 8) / CHARACTER))}</text>`}
    </g>`)}</g>`;
}

function useWidth(box) {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.max(200, Math.floor(entry.contentRect.width))));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

/** Drags move the view; the wheel zooms where the pointer is, once the chart has the focus. */
function usePointer(box, view, setView, end, width) {
  const now = useRef({});
  now.current = { view, width };
  useEffect(() => {
    const element = box.current;
    let drag = null;
    const wheel = (event) => {
      if (document.activeElement !== element) return;
      event.preventDefault();
      const [from, to] = now.current.view;
      const share = (event.clientX - element.getBoundingClientRect().left) / now.current.width;
      setView(zoomed([from, to], end, event.deltaY < 0 ? 1.25 : 0.8, from + share * (to - from)));
    };
    const down = (event) => { if (event.button === 0) drag = { x: event.clientX, view: now.current.view }; };
    const move = (event) => {
      if (!drag || Math.abs(event.clientX - drag.x) < 3) return;
      const share = (drag.x - event.clientX) / now.current.width;
      setView(moved(drag.view, end, share));
    };
    const up = () => { drag = null; };
    element.addEventListener("wheel", wheel, { passive: false });
    element.addEventListener("pointerdown", down);
    addEventListener("pointermove", move);
    addEventListener("pointerup", up);
    addEventListener("pointercancel", up);
    return () => {
      element.removeEventListener("wheel", wheel);
      element.removeEventListener("pointerdown", down);
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", up);
      removeEventListener("pointercancel", up);
    };
  }, [end]);
}

export function Lanes({ trace, view, setView, chosen, choose }) {
  const box = useRef(null);
  const width = useWidth(box);
  usePointer(box, view, setView, trace.end, width);
  const press = (event) => {
    const act = event.ctrlKey || event.altKey || event.metaKey ? null : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    setView(act(view, trace.end));
  };
  let top = AXIS;
  const placed = trace.lanes.map((lane) => {
    const at = top;
    top += LABEL + lane.rows * ROW + 4;
    return { lane, at };
  });
  const scale = width / (view[1] - view[0]);
  const button = (key, label, text) => html`<${Button} label=${label} onClick=${() => setView(KEYS[key](view, trace.end))}>${text}<//>`;
  return html`<div class="stack">
    <div class="row" role="group" aria-label="Zoom and move">
      ${button("+", "Zoom in", "+")}${button("-", "Zoom out", "−")}${button("ArrowLeft", "Earlier", "←")}${button("ArrowRight", "Later", "→")}${button("0", "Show the whole step", "Whole step")}
      <span class="muted small" role="status">${duration(view[0] / 1e9)} to ${duration(view[1] / 1e9)}</span></div>
    <div class="timeline" ref=${box} tabindex="0" role="group" aria-label="Timeline: arrow keys move, plus and minus zoom, 0 shows the whole step" onKeyDown=${press}>
      <svg width=${width} height=${top} aria-hidden="true">
        ${ticks(view, width).map((at) => html`<g key=${at} class="tick"><line x1=${(at - view[0]) * scale} x2=${(at - view[0]) * scale} y1="16" y2=${top} />
          <text x=${Math.min(width - 52, (at - view[0]) * scale + 3)} y="12">${duration(at / 1e9)}</text></g>`)}
        ${placed.map(({ lane, at }, i) => html`<${Lane} key=${i} lane=${lane} top=${at} view=${view} width=${width} chosen=${chosen} choose=${choose} />`)}
      </svg></div>
    <p class="small" role="status">${chosen ? html`<span class="mono">${chosen.node}</span> (${chosen.op}): ${duration((chosen.end - chosen.start) / 1e9)} from ${duration(chosen.start / 1e9)}${chosen.output && html`, <span class="mono">${chosen.output}</span>`}`
      : "Choose a span for its node. Drag to move; after a click the wheel zooms."}</p>
  </div>`;
}
