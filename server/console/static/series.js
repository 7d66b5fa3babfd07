// The kept messages of the stream as lines for charts.

const MOST = 6; // lines in one chart; more can't be told apart

/** The ages of the messages in seconds, oldest first: [-2, -1, 0]. */
export function ages(history) {
  const now = history.at(-1)?.at ?? 0;
  return history.map((message) => Math.round((message.at - now) * 10) / 10);
}

/**
 * One line for each name: `rows(message)` are objects with a name, `value(row)` is a number or null.
 * The largest ones are shown; a message without the row leaves a gap.
 */
export function lines(history, rows, value, { name = (row) => row.name, most = MOST } = {}) {
  const found = new Map();
  history.forEach((message, i) => {
    for (const row of rows(message) ?? []) {
      const key = name(row);
      let line = found.get(key);
      if (!line) found.set(key, (line = { label: key, values: Array(history.length).fill(null), sum: 0 }));
      line.values[i] = value(row) ?? null;
      line.sum += line.values[i] ?? 0;
    }
  });
  const all = [...found.values()];
  // The largest are chosen but stay in the order of the server, so that colours don't jump.
  const chosen = new Set([...all].sort((a, b) => b.sum - a.sum).slice(0, most));
  return all.filter((line) => chosen.has(line));
}

/** The values of the row `name` over time, for a sparkline. */
export const track = (history, rows, name, value) =>
  history.map((message) => value((rows(message) ?? []).find((row) => row.name === name) ?? {}) ?? 0);
