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

/** A time in nanoseconds; a writer that knows no nanoseconds gives microseconds alone. */
const nanos = (stats, name) =>
  "all_start_nanos" in stats ? Number(stats[`${name}_nanos`] ?? 0) : Number(stats[`${name}_micros`] ?? 0) * EVERY;

/** "y = AddV2(x, two)" → "AddV2". */
const opOf = (stats) => /^[^=]*=\s*([^(]*)\(/.exec(stats.timeline_label ?? "")?.[1].trim() || "?";

function outputOf(stats) {
  return (stats.output ?? []).map(({ tensor_description: one }) => {
    const dims = (one?.shape?.dim ?? []).map((dim) => dim.size ?? 0);
    return `${String(one?.dtype ?? "").replace("DT_", "").toLowerCase()} [${dims.join(", ")}]`;
  }).join("; ");
}

/** Threads of the pool "online" are all called "tf_online". */
const poolOf = (thread) => thread.replace(/^tf_/, "");

/** Lanes by pool, each thread of a pool with its number. */
function named(lanes) {
  const seen = new Map();
  for (const lane of lanes) {
    const nth = (seen.get(lane.pool) ?? 0) + 1;
    seen.set(lane.pool, nth);
    lane.name = `${lane.pool} · thread ${nth}`;
  }
  return lanes.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
}

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
 * {what, end (ns), lanes: [{name, pool, rows, spans}], slowest, cut, idle, file}. A span is {node, op,
 * start, end (ns from the step's first node), row, output}. The first 20,000 are drawn; constants
 * and the like, which took no time, are only counted: `idle`.
 */
export function traceOf(runMetadata, what) {
  const devices = runMetadata?.step_stats?.dev_stats ?? [];
  const all = devices.flatMap(({ device, node_stats: nodes = [], thread_names: names = {} }) =>
    nodes.map((stats) => ({
      device, thread: stats.thread_id ?? 0, pool: poolOf(names[stats.thread_id ?? 0] ?? "no pool"), node: stats.node_name ?? "",
      op: opOf(stats), begun: nanos(stats, "all_start"), lasted: nanos(stats, "all_end_rel"), output: outputOf(stats),
    })));
  all.sort((a, b) => a.begun - b.begun);
  const timed = all.filter((one) => one.lasted > 0);
  const zero = all[0]?.begun ?? 0;
  const lanes = new Map();
  for (const one of timed.slice(0, MOST_SPANS)) {
    const key = JSON.stringify([one.device, one.thread]);
    if (!lanes.has(key)) lanes.set(key, { pool: one.pool, spans: [] });
    const start = one.begun - zero;
    lanes.get(key).spans.push({ node: one.node, op: one.op, start, end: start + one.lasted, output: one.output });
  }
  const drawn = named([...lanes.values()].map((lane) => ({ ...lane, rows: inRows(lane.spans) })));
  const busy = all.reduce((sum, one) => sum + one.lasted, 0) || 1;
  const spans = drawn.flatMap((lane) => lane.spans);
  return {
    what, lanes: drawn, cut: timed.length - spans.length, idle: all.length - timed.length, file: chromeTrace(all, zero),
    end: spans.reduce((end, span) => Math.max(end, span.end), 1),
    slowest: [...spans].sort((a, b) => b.end - b.start - (a.end - a.start)).slice(0, MOST_SLOW)
      .map((span) => ({ span, seconds: (span.end - span.start) / 1e9, share: (span.end - span.start) / busy })),
  };
}

// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: times in µs
function chromeTrace(all, zero) {
  const devices = [...new Set(all.map((one) => one.device))];
  const threads = new Map(all.map((one) => [one.thread, one.pool]));
  const events = devices.map((name, pid) => ({ ph: "M", name: "process_name", pid, args: { name } }));
  for (const [tid, name] of threads) {
    for (const pid of devices.keys()) events.push({ ph: "M", name: "thread_name", pid, tid, args: { name } });
  }
  for (const one of all) {
    events.push({
      ph: "X", cat: "Op", name: one.op, pid: devices.indexOf(one.device), tid: one.thread,
      ts: (one.begun - zero) / EVERY, dur: one.lasted / EVERY, args: { name: one.node, op: one.op, output: one.output },
    });
  }
  return JSON.stringify({ traceEvents: events, displayTimeUnit: "ns" });
}
