// Tensors of an answer as text. Integers beyond 2^53 keep all their digits where the browser can.
const MOST_CHARACTERS = 20_000;

const exact = (_, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source && JSON.rawJSON
    ? JSON.rawJSON(context.source) : value;

export const parseExact = (text) => JSON.parse(text, exact);

function lines(value, indent) {
  if (!Array.isArray(value) || !value.some(Array.isArray)) {
    return Array.isArray(value) ? `[${value.map((one) => JSON.stringify(one)).join(", ")}]` : JSON.stringify(value);
  }
  const inner = value.map((one) => lines(one, `${indent} `));
  return `[${inner.join(`,\n${indent} `)}]`;
}

/** Nested data, a row of the last dimension on a line, cut if it is long. */
export function tensorText(data) {
  const text = lines(data, "") ?? "null";
  if (text.length <= MOST_CHARACTERS) return text;
  return `${text.slice(0, MOST_CHARACTERS)}\n… (${text.length.toLocaleString("en")} characters in all)`;
}
