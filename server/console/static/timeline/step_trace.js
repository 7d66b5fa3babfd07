// The server's trace of a step as the lanes that are drawn: one for each thread of a pool.
const NANOS = 1000; // in a microsecond

let kept = null;

/** The trace that was made last, for the page of timelines; null if there is none. */
export const keptTrace = () => kept;

export function keepTrace(answer, what) {
  kept = traceOf(answer, what);
}

/** Spans of one thread overlap if a kernel is asynchronous: each gets the first free row. */
function inRows(spans) {
  const ends = [];
  for (const span of spans) {
    const row = ends.findIndex((end) => end <= span.start);
    span.row = row < 0 ? ends.length : row;
    ends[span.row] = span.end;
  }
  return Math.max(1, ends.length);
}

function spanOf({ node, op, start_us: start, duration_us: lasted, output }) {
  return { node, op, output, start: start * NANOS, end: (start + lasted) * NANOS };
}

/** Lanes with their names: "online · thread 1 · numpy". */
function lanesOf(lanes) {
  const seen = new Map();
  return lanes.map(({ pool, engine, thread, spans }) => {
    const nth = (seen.get(pool) ?? 0) + 1;
    seen.set(pool, nth);
    const drawn = spans.map(spanOf);
    return { name: `${pool ? `${pool} · thread ${nth}` : thread} · ${engine}`, spans: drawn, rows: inRows(drawn) };
  });
}

/**
 * {what, end, lanes: [{name, rows, spans}], slowest: [{span, seconds, share}], truncated, file}. A span
 * is {node, op, start, end, row, output}; times are nanoseconds from the step's first node.
 */
function traceOf(answer, what) {
  const lanes = lanesOf(answer.lanes);
  const slowest = answer.slowest.map(({ node, lane, duration_us: lasted, share }) => ({
    span: lanes[lane].spans.find((span) => span.node === node && span.end - span.start >= lasted * NANOS - 1),
    seconds: lasted / 1e6, share,
  }));
  return {
    what, lanes, slowest: slowest.filter((one) => one.span), truncated: answer.truncated,
    end: lanes.flatMap((lane) => lane.spans).reduce((end, span) => Math.max(end, span.end), 1),
    file: JSON.stringify(answer.chrome_trace),
  };
}
