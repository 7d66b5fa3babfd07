// RunMetadata of a traced step as lanes, one for each thread of a pool, and as a file for Perfetto.
const EVERY = 1000; // nanoseconds in a microsecond
const MOST_SPANS = 20_000; // more are not drawn; the file has them all
const MOST_SLOW = 10;

let kept = null;

/** The trace that was made last, for the page of timelines; null if there is none. */
export const keptTrace = () => kept;

export function keepTrace(runMetadata, what) {
  kept = traceOf(runMetadata, what);
}

const nanos = (stats) => Number(stats.all_start_nanos ?? 0) || Number(stats.all_start_micros ?? 0) * EVERY;
const lasted = (stats) => Number(stats.all_end_rel_nanos ?? 0) || Number(stats.all_end_rel_micros ?? 0) * EVERY;

/** "y = AddV2(x, two)" → "AddV2". */
const opOf = (stats) => /^[^=]*=\s*([^(]*)\(/.exec(stats.timeline_label ?? "")?.[1].trim() || "?";

function outputOf(stats) {
  return (stats.output ?? []).map(({ tensor_description: one }) => {
    const dims = (one?.shape?.dim ?? []).map((dim) => dim.size ?? 0);
    return `${String(one?.dtype ?? "").replace("DT_", "").toLowerCase()} [${dims.join(", ")}]`;
  }).join("; ");
}

/** "online_3" or "online/3" is a thread of the pool "online". */
const poolOf = (thread) => thread.replace(/[-_/ ]?\d+$/, "") || thread;

/** Spans of one thread may overlap if a kernel is asynchronous: each gets the first free row. */
function inRows(spans) {
  const ends = [];
  for (const span of spans) {
    const row = ends.findIndex((end) => end <= span.start);
    span.row = row < 0 ? ends.length : row;
    ends[span.row] = span.end;
  }
  return Math.max(1, ends.length);
}

/**
 * {what, end (ns), lanes: [{name, pool, device, rows, spans}], slowest, cut, file}. A span is {node,
 * op, start, end (ns from the step's first node), row, output}. The most recent 20,000 are drawn.
 */
export function traceOf(runMetadata, what) {
  const devices = runMetadata?.step_stats?.dev_stats ?? [];
  const all = devices.flatMap(({ device, node_stats: nodes = [], thread_names: names = {} }) =>
    nodes.map((stats) => ({
      device, thread: names[stats.thread_id ?? 0] ?? `thread ${stats.thread_id ?? 0}`, node: stats.node_name ?? "",
      op: opOf(stats), begun: nanos(stats), lasted: lasted(stats), output: outputOf(stats),
    })));
  all.sort((a, b) => a.begun - b.begun);
  const zero = all[0]?.begun ?? 0;
  const lanes = new Map();
  for (const one of all.slice(0, MOST_SPANS)) {
    const key = JSON.stringify([one.device, one.thread]);
    if (!lanes.has(key)) lanes.set(key, { name: one.thread, pool: poolOf(one.thread), device: one.device, spans: [] });
    const start = one.begun - zero;
    lanes.get(key).spans.push({ node: one.node, op: one.op, start, end: start + Math.max(1, one.lasted), output: one.output });
  }
  const drawn = [...lanes.values()].map((lane) => ({ ...lane, rows: inRows(lane.spans) }));
  drawn.sort((a, b) => a.pool.localeCompare(b.pool) || a.name.localeCompare(b.name, "en", { numeric: true }));
  const busy = all.reduce((sum, one) => sum + one.lasted, 0) || 1;
  const spans = drawn.flatMap((lane) => lane.spans);
  return {
    what, lanes: drawn, cut: all.length - spans.length, file: chromeTrace(all, zero),
    end: spans.reduce((end, span) => Math.max(end, span.end), 1),
    slowest: [...spans].sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, MOST_SLOW)
      .map((span) => ({ span, seconds: (span.end - span.start) / 1e9, share: (span.end - span.start) / busy })),
  };
}

// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: times in µs
function chromeTrace(all, zero) {
  const devices = [...new Set(all.map((one) => one.device))];
  const threads = [...new Set(all.map((one) => one.thread))];
  const events = devices.map((name, pid) => ({ ph: "M", name: "process_name", pid, args: { name } }));
  for (const [tid, name] of threads.entries()) {
    for (const pid of devices.keys()) events.push({ ph: "M", name: "thread_name", pid, tid, args: { name } });
  }
  for (const one of all) {
    events.push({
      ph: "X", cat: "Op", name: one.op, pid: devices.indexOf(one.device), tid: threads.indexOf(one.thread),
      ts: (one.begun - zero) / EVERY, dur: one.lasted / EVERY, args: { name: one.node, op: one.op, output: one.output },
    });
  }
  return JSON.stringify({ traceEvents: events, displayTimeUnit: "ns" });
}
