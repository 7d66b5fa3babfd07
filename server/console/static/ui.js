// Preact's elements, hooks and the html`` tag, from the one vendored module. Pages import from here.
export {
  Component, html, render, useCallback, useEffect, useErrorBoundary, useLayoutEffect, useMemo, useRef,
  useState,
} from "./vendor/htm/preact/standalone.module.js";
