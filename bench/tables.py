"""The benchmarks' figures as Markdown tables: pure functions of what the sections write as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Figures = Mapping[str, Any]
STAGES = ("before", "loaded", "after")  # of bench.unloading
NONE, UNAVAILABLE = "–", "not available"
TOLERANCE = 1e-3  # of answers, relative to the largest value: far above float32's noise
# Of engines that compute in less than float32: in bfloat16 OpenVINO by itself differs by 0.15 in a
# ResNet50 whose weights are random.
TOLERANCES = {"runstep_openvino_bf16": 0.2}
ENGINES = {
    "runstep": "Runstep",
    "runstep_clusters": "with clusters",
    "runstep_openvino": "with OpenVINO",
    "runstep_openvino_bf16": "with OpenVINO, bfloat16",
    "tensorflow": "TensorFlow",
    "onnx_runtime": "ONNX Runtime",
    "openvino": "OpenVINO",
}


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def significant(value: float | None) -> str:
    """Return a figure with three digits, or a dash for None."""
    if value is None:
        return NONE
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def engines_of(figures: Figures) -> list[str]:
    """Return the engines that have a row for some model, in the order of ENGINES."""
    present = {engine for engines in figures["models"].values() for engine in engines}
    return [engine for engine in ENGINES if engine in present]


def step_figure(figures: Figures, model: str, engine: str, batch: int, key: str) -> float | None:
    """Return a figure of bench.step_times, or None if the engine has none for the model."""
    row = figures["models"].get(model, {}).get(engine, {})
    found: float | None = row.get("batches", {}).get(str(batch), {}).get(key)
    return found


def is_wrong(figures: Figures, model: str, engine: str, batch: int) -> bool:
    """Return whether an engine's answers differ from those that are expected of the model."""
    error = step_figure(figures, model, engine, batch, "error") or 0
    return error > TOLERANCES.get(engine, TOLERANCE)


def step_table(figures: Figures, batches: Sequence[int], key: str = "median_ms") -> str:
    """Return a row for each model: each engine's ms, the batch sizes separated by strokes.

    An engine that does not run the model is "not available". Figures of an engine whose answers
    differ from the expected ones are marked.
    """
    engines = engines_of(figures)
    sizes = " / ".join(map(str, batches))
    rows = []
    for model, of_model in figures["models"].items():
        cells = []
        for engine in engines:
            if "unavailable" in of_model.get(engine, {}):
                cells.append(UNAVAILABLE)
                continue
            seen = [step_figure(figures, model, engine, batch, key) for batch in batches]
            is_any_wrong = any(is_wrong(figures, model, engine, batch) for batch in batches)
            wrong = " **wrong**" if is_any_wrong else ""
            missing = all(value is None for value in seen)
            cells.append(NONE if missing else " / ".join(map(significant, seen)) + wrong)
        rows.append([model, *cells])
    return table([f"ms at batch {sizes}", *(ENGINES[engine] for engine in engines)], rows)


def load_table(figures: Figures) -> str:
    """Return a row for each model: seconds to load and to the first answer, and memory."""
    engines = engines_of(figures)
    rows = []
    for model, of_model in figures["models"].items():
        cells = []
        for engine in engines:
            row = of_model.get(engine, {})
            resident = row.get("batches", {}).get("1", {}).get("resident_mb")
            seconds = [row.get("load_s"), row.get("first_s")]
            shown = [*map(significant, seconds), f"{resident:.0f}" if resident else NONE]
            cells.append(" / ".join(shown) if "load_s" in row else NONE)
        rows.append([model, *cells])
    head = "load s / first run s / resident MB"
    return table([head, *(ENGINES[engine] for engine in engines)], rows)


def overhead_table(figures: Figures) -> str:
    """Return a row for each graph of bench.session_overhead."""
    rows = []
    for name, micros in figures["runstep"].items():
        peer = figures.get("tensorflow", {}).get(name)
        shown = [f"{peer:,.0f}", f"{micros / peer:.2f}"] if peer else [NONE, NONE]
        rows.append([name, f"{micros:,.0f}", *shown])
    return table(["graph / where it runs", "Runstep µs", "TensorFlow µs", "ratio"], rows)


def http_rate_table(figures: Figures) -> str:
    """Return a row for each call of bench.http.rates."""
    names = {"echo": "bare echo", "predict": "`:predict`", "run": "`:run`"}
    rows = [
        [
            name,
            f"{figures[call]['per_second']:,.0f}",
            f"{figures[call]['of_echo']:.2f}",
            significant(figures[call]["p50_ms"]),
            significant(figures[call]["p99_ms"]),
        ]
        for call, name in names.items()
    ]
    return table(["call", "requests/s", "of the echo", "p50 ms", "p99 ms"], rows)


def front_table(figures: Figures) -> str:
    """Return a row for each model and call of bench.fronts."""
    rows = [
        [
            model,
            call,
            f"{row['per_second']:,.0f}",
            f"{row['of_echo']:.2f}",
            significant(row["p50_ms"]),
            significant(row["p99_ms"]),
            f"{row['client']:.2f}",
        ]
        for model, calls in figures["models"].items()
        for call, row in calls.items()
    ]
    head = ["model", "call", "requests/s", "of its echo", "p50 ms", "p99 ms", "client, of a core"]
    return table(head, rows)


def batching_table(figures: Figures) -> str:
    """Return a row for each model and number of callers of bench.batching."""
    rows = []
    for model, by_callers in figures.items():
        for callers, modes in by_callers.items():
            none = modes["none"]
            shown = [f"{none['per_second']:,.0f} ({significant(none['p99_ms'])})"]
            for mode in ("adaptive", "parameters"):
                row = modes[mode]
                shown.append(
                    f"{row['per_second']:,.0f}, × {row['of_none']:.2f} "
                    f"({significant(row['p99_ms'])})"
                )
            rows.append([model, callers, *shown])
    head = ["model", "callers", "none: requests/s (p99 ms)", "adaptive", "parameters"]
    return table(head, rows)


def _without_stalls(row: Mapping[str, float]) -> str:
    if "still_p99_ms" not in row:
        return "not known; 0 %"
    p99, ratio = row["still_p99_ms"], row["still_p99_of_idle"]
    return f"{p99:.2f} ({ratio:.2f}); {100 * row['still_share']:.0f} %"


def latency_table(figures: Figures) -> str:
    """Return a row for each row of `latency_figures`; ratios are to the idle row.

    If it is known when the machine stood still (bench/stalls.py), the p99 of other times is there.
    """
    rows = []
    knows_stalls = any("still_share" in row for row in figures.values())
    for name, row in figures.items():
        tails = [
            f"{row[f'{key}_ms']:.2f} ({row[f'{key}_of_idle']:.2f})"
            for key in ("p99", "window_p99", "window_p99_quartile")
        ]
        if knows_stalls:
            tails.append(_without_stalls(row))
        rows.append([name, f"{row['p50_ms']:.2f}", *tails])
    head = ["beside", "p50 ms", "p99 ms (÷ idle)"]
    head += ["p99 of 0.1 s, half of them below", "a quarter of them below"]
    if knows_stalls:
        head.append("p99 where no core stood still; of the time")
    return table(head, rows)


def start_table(figures: Figures) -> str:
    """Return the figures of bench.start."""
    rows = [
        ["bare FastAPI, first answer", f"{figures['hello_s']:.2f} s"],
        ["Runstep, first /healthz", f"{figures['health_s']:.2f} s"],
        ["Runstep, first prediction", f"{figures['predict_s']:.2f} s"],
        ["Runstep, resident after it", f"{figures['resident_mb']:.0f} MB"],
        ["Runstep, resident once idle again", f"{figures['settled_mb']:.0f} MB"],
    ]
    return table(["what", f"median of {figures['runs']}"], rows)


def opening_table(figures: Figures) -> str:
    """Return the figures of bench.open_sessions."""
    row = [figures["sessions"], f"{figures['open_ms']:.2f}", f"{figures['mb_each']:.2f}"]
    return table(["sessions", "ms to open (median)", "MB each, after a run"], [row])


def unloading_table(figures: Figures) -> str:
    """Return the figures of bench.unloading."""
    row = [figures["copies"], *(f"{figures[f'{key}_mb']:.0f}" for key in STAGES)]
    ratio = f"{figures['after_mb'] / figures['before_mb']:.2f}"
    return table(["models", "MB before", "loaded", "unloaded", "÷ before"], [[*row, ratio]])
