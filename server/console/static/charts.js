// Lines over time: uPlot for charts with axes, one SVG path for sparklines in tables.
import { html, useEffect, useLayoutEffect, useRef } from "./ui.js";

// The age of a point: "−30 s", "−1:30", "now".
const age = (x) => (x === 0 ? "now" : x > -60 ? `−${-x} s` : `−${Math.floor(-x / 60)}:${String(Math.round(-x % 60)).padStart(2, "0")}`);

// "7.50 ms" as "7.5 ms": the ticks of an axis need no more digits than they differ in.
const short = (text) => text.replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, "");

// A canvas needs colours as values, so the browser resolves the theme's names.
function colorOf(name, element) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  element.append(probe);
  const color = getComputedStyle(probe).color;
  probe.remove();
  return color;
}

const faded = (color) => color.replace(/^rgb\(/, "rgba(").replace(/\)$/, ", 0.12)");

function optionsOf(element, series, { format, height, max, whole }) {
  const line = colorOf("--line", element);
  const text = colorOf("--muted", element);
  const px = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const font = `${Math.round(px * 0.8)}px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: text, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, gap: 4 };
  return {
    width: element.clientWidth, height: Math.round(height * px),
    padding: [px * 0.6, px * 1.2, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { show: false },
    scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max((high ?? 0) * 1.1, max ?? 0) || 1] } },
    axes: [
      { ...axis, size: Math.round(px * 1.7), space: px * 5, incrs: [1, 5, 10, 15, 30, 60, 120, 300], values: (_, ticks) => ticks.map(age) },
      { ...axis, size: Math.round(px * 4.6), space: px * 2, values: (_, ticks) => ticks.map((y) => short(format(y))), ...(whole && { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10000, 100000] }) },
    ],
    series: [
      {},
      ...series.map(({ label }, i) => {
        const stroke = colorOf(`--series-${(i % 6) + 1}`, element);
        return {
          label, stroke, width: 1.5 * Math.max(1, px / 16), fill: series.length === 1 ? faded(stroke) : undefined,
          points: { show: false }, spanGaps: false, dash: i >= 6 ? [6, 4] : undefined,
        };
      }),
    ],
  };
}

/**
 * Lines over the last seconds. `seconds` are negative ages, oldest first; `series` are
 * [{label, values}] of the same length, where null is a gap. `format` writes a value, `height` is in
 * rem; `whole` values have no ticks between integers. The legend shows the last values, so the chart is readable without its picture.
 */
export function Chart({ label, seconds, series, format = String, height = 10, max, whole }) {
  const box = useRef(null);
  const plot = useRef(null);
  const data = [seconds, ...series.map((one) => one.values)];
  const latest = useRef(data);
  latest.current = data;
  const names = JSON.stringify(series.map((one) => one.label));

  useLayoutEffect(() => {
    const element = box.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = new window.uPlot(optionsOf(element, series, { format, height, max, whole }), latest.current, element);
    };
    make();
    const resized = new ResizeObserver(() => {
      if (plot.current.width !== element.clientWidth) plot.current.setSize({ width: element.clientWidth, height: plot.current.height });
    });
    resized.observe(element);
    const themed = new MutationObserver(make);
    themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", make);
    return () => {
      resized.disconnect();
      themed.disconnect();
      system.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names]);

  useEffect(() => plot.current?.setData(latest.current));

  const last = (values) => format(values.at(-1) ?? null);
  return html`<div class="chart">
    <div class="plot" ref=${box} role="img" aria-label=${`${label}; now ${series.map((one) => `${one.label} ${last(one.values)}`).join(", ")}`}></div>
    <ul class="legend">${series.map((one, i) => html`<li key=${one.label} class=${`series-${(i % 6) + 1}`}><i></i>
      <span class="name">${one.label}</span> <span class="value">${last(one.values)}</span></li>`)}</ul>
  </div>`;
}

/** A small line of `values`, oldest first, from 0 to `max` or to the largest of them. */
export function Sparkline({ values, max, label }) {
  const numbers = values.map((value) => (Number.isFinite(value) ? value : 0));
  const top = max || Math.max(...numbers, 0) || 1;
  const step = 100 / Math.max(1, numbers.length - 1);
  const points = numbers.map((value, i) => `${(i * step).toFixed(1)},${(23 - 22 * Math.min(1, value / top)).toFixed(1)}`);
  const path = points.length > 1 ? `M${points.join("L")}` : "";
  return html`<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label}>
    ${path && html`<path class="area" d=${`${path}L100,24L0,24Z`} /><path d=${path} />`}</svg>`;
}
