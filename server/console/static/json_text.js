// JSON as text with an indentation. The text of numbers stays as it came: JSON.parse would round
// 64-bit integers, and refuses the bare NaN that TensorFlow Serving's answers have.

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/g;
const WIDE = 52; // an array of plain values below this width stays on one line
const CLOSING = { "[": "]", "{": "}" };

/** The same JSON, indented by two; text that is no JSON comes back as it is. */
export function indented(text) {
  const tokens = text.match(TOKEN) ?? [];
  let at = 0;
  const value = (margin) => {
    const opening = tokens[at++];
    const closing = CLOSING[opening];
    if (closing === undefined) return opening ?? "";
    const inner = `${margin}  `;
    const parts = [];
    let plain = opening === "[";
    while (at < tokens.length && tokens[at] !== closing) {
      if (tokens[at] === ",") {
        at += 1;
        continue;
      }
      const key = opening === "{" ? `${tokens[at++]}${tokens[at++]} ` : "";
      plain &&= CLOSING[tokens[at]] === undefined;
      parts.push(key + value(inner));
    }
    at += 1;
    if (!parts.length) return opening + closing;
    const line = parts.join(", ");
    if (plain && line.length < WIDE) return `${opening}${line}${closing}`;
    const lines = plain ? folded(parts, inner) : parts.map((part) => inner + part).join(",\n");
    return `${opening}\n${lines}\n${margin}${closing}`;
  };
  try {
    const written = value("");
    return at < tokens.length ? text : written;
  } catch {
    return text; // nested too deeply for the browser's stack
  }
}

function folded(parts, margin) {
  const lines = [];
  let line = "";
  for (const part of parts) {
    if (line && line.length + part.length > WIDE) {
      lines.push(`${margin}${line}`);
      line = "";
    }
    line += `${line && " "}${part},`;
  }
  lines.push(`${margin}${line.replace(/,$/, "")}`);
  return lines.join("\n");
}
