// The thread pools: who is busy, who waits, and what waiting costs, normal beside low priority.
import { Bar, Chart, Chip, Empty, PageHead, Panel, Sparkline, Table } from "../components.js";
import { count, duration, number } from "../format.js";
import { LiveState, useHeldLive } from "../live_page.js";
import { ages, lines, track } from "../series.js";
import { html } from "../ui.js";

const KINDS = [[false, "Normal priority"], [true, "Low priority"]];

export default function Pools() {
  const held = useHeldLive();
  return html`<${PageHead} title="Thread pools">${held.hold}<//><${LiveState} ...${held} />
    ${held.live && html`<div class="grid pools">${KINDS.map(([low, title]) => html`<${Kind} key=${title} low=${low} title=${title} ...${held.live} />`)}</div>
      <${AllPools} ...${held.live} />`}`;
}

function Kind({ low, title, latest, history }) {
  const rows = (message) => message.pools.filter((pool) => pool.low_priority === low);
  if (!rows(latest).length) return html`<${Panel} title=${title}><${Empty} title="No pool has this priority" /><//>`;
  const seconds = ages(history);
  const charts = [
    ["Busy threads", (pool) => pool.running, number, Math.max(...rows(latest).map((pool) => pool.num_threads))],
    ["Queue", (pool) => pool.queued, number, 1],
    ["Wait for a thread, mean", (pool) => pool.wait_seconds, duration],
    ["Time on a thread, mean", (pool) => pool.run_seconds, duration],
  ];
  return html`<${Panel} title=${title}><div class="grid narrow charts">
    ${charts.map(([label, value, format, most]) => html`<div key=${label} class="stack"><h3>${label}</h3>
      <${Chart} label=${`${label}, ${title}`} height=${8} max=${most} whole=${most !== undefined} seconds=${seconds} series=${lines(history, rows, value)} format=${format} /></div>`)}
  </div><//>`;
}

function AllPools({ latest, history }) {
  const pools = (message) => message.pools;
  return html`<${Panel} flush title="All pools" note="waits and runs: mean of what ended in the last second">
    <${Table} caption="Thread pools" rows=${latest.pools} wide rowKey=${(pool) => pool.name} empty="There are no pools" columns=${[
      { key: "name", label: "Pool", head: true },
      { key: "low_priority", label: "Priority", render: (pool) => html`<${Chip} state=${pool.low_priority ? "low" : "normal"} kind=${pool.low_priority ? "" : "busy"} />` },
      { key: "running", label: "Busy", num: true, render: (pool) => html`<${Bar} value=${pool.running} max=${pool.num_threads} label=${`Busy threads of ${pool.name}`} text=${`${pool.running} of ${pool.num_threads}`} />` },
      { key: "trend", label: "Last minutes", sort: false, render: (pool) => html`<div class="spark-cell"><${Sparkline} label=${`Busy threads of ${pool.name}`} max=${pool.num_threads} values=${track(history, pools, pool.name, (one) => one.running)} /></div>` },
      { key: "queued", label: "Queue", num: true, render: (pool) => count(pool.queued) },
      { key: "wait_seconds", label: "Wait", num: true, render: (pool) => duration(pool.wait_seconds) },
      { key: "run_seconds", label: "Run", num: true, render: (pool) => duration(pool.run_seconds) },
      { key: "completed_per_second", label: "Done per second", num: true, render: (pool) => number(pool.completed_per_second) },
      { key: "stuck", label: "Stuck", num: true, render: (pool) => count(pool.stuck) },
    ]} /><//>`;
}
