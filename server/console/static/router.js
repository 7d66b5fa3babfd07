// The address after # as {page, params, query}: "#/models/half?version=2".
import { useEffect, useState } from "./ui.js";

// [pattern of the path, module of the page, text in the navigation or "" for none]
export const ROUTES = [
  ["overview", "overview", "Overview"],
  ["models", "models", "Models"],
  ["models/:name", "model", ""],
  ["sessions", "sessions", "Sessions"],
  ["sessions/:id", "session", ""],
  ["timeline", "timeline", "Timeline"],
  ["pools", "pools", "Pools"],
];

/** "#/models/a%2Fb?version=2" for link("models", "a/b") with {version: 2}. */
export function link(...parts) {
  const query = typeof parts.at(-1) === "object" ? new URLSearchParams(parts.pop()).toString() : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${query && `?${query}`}`;
}

export const go = (...parts) => {
  location.hash = link(...parts);
};

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The route of an address, or null if there is no such page. */
export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const parts = (path || "overview").split("/").map(decoded);
  for (const [pattern, page] of ROUTES) {
    const wanted = pattern.split("/");
    if (wanted.length !== parts.length) continue;
    if (!wanted.every((part, i) => part.startsWith(":") || part === parts[i])) continue;
    const params = Object.fromEntries(
      wanted.flatMap((part, i) => (part.startsWith(":") ? [[part.slice(1), parts[i]]] : [])),
    );
    return { page, params, section: wanted[0], query: Object.fromEntries(new URLSearchParams(query)) };
  }
  return null;
}

export function useRoute() {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const changed = () => setHash(location.hash);
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return { hash, route: parse(hash) };
}
