// Numbers, sizes and times as text. All of them are aligned right and have tabular figures.

const DASH = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const known = (value) => typeof value === "number" && Number.isFinite(value);

/** 1234567 → "1,234,567". */
export const count = (value) => (known(value) ? whole.format(value) : DASH);

/** Three significant digits and no exponent: 0.123, 12.3, 1,234. */
export function number(value) {
  if (!known(value)) return DASH;
  const size = Math.abs(value);
  if (size >= 100 || Number.isInteger(value)) return whole.format(value);
  return value.toFixed(size >= 10 ? 1 : size >= 1 ? 2 : 3);
}

/** 1536 → "1.50 KiB". */
export function bytes(value) {
  if (!known(value)) return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit ? number(size) : whole.format(size)} ${units[unit]}`;
}

/** Seconds as "870 µs", "1.20 ms", "3.4 s", "2 min 5 s", "3 h 4 min", "2 d 3 h". */
export function duration(seconds) {
  if (!known(seconds)) return DASH;
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${number(seconds * 1e6)} µs`;
  if (size < 1) return `${number(seconds * 1e3)} ms`;
  if (size < 60) return `${number(seconds)} s`;
  for (const [unit, name, below, next] of [[60, "min", 1, "s"], [3600, "h", 60, "min"], [86400, "d", 3600, "h"]]) {
    if (size < unit * (name === "min" ? 60 : name === "h" ? 24 : Infinity)) {
      return `${Math.floor(seconds / unit)} ${name} ${Math.floor((seconds % unit) / below)} ${next}`;
    }
  }
  return DASH;
}

/** A share of 1 as "12 %" or, if small, "0.4 %". */
export const percent = (share) =>
  known(share) ? `${share && Math.abs(share) < 0.0995 ? (share * 100).toFixed(1) : whole.format(share * 100)} %` : DASH;

/** An RFC 3339 time, or seconds since 1970, as local "2026-11-23 14:05:09". */
export function time(value) {
  const at = new Date(known(value) ? value * 1000 : value ?? NaN);
  if (Number.isNaN(at.getTime())) return DASH;
  const two = (n) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** [3, null, -1] → "[3, ?, ?]"; no shape is "any". */
export const shape = (dims) =>
  Array.isArray(dims) ? `[${dims.map((dim) => (known(dim) && dim >= 0 ? dim : "?")).join(", ")}]` : "any";
