"""The figures that a version must reach, and whether it does: pure functions of the sections' JSON.

A bar of a section that has no figures is "not measured", as is one whose peer has none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bench.sections import MODEL
from bench.tables import ENGINES, Figures, is_wrong, significant, step_figure, table

HEAVY = (
    "mobilenet_v2", "resnet50", "efficientnet_b0", "transformer", "lstm", "gru", "unet",
)  # fmt: skip
LIGHT = ("mlp", "wide_and_deep")  # steps of less than 0.2 ms, mostly overhead
HEAVY_BATCHES = (1, 8)
OF_BETTER_ENGINE = 1.15
ABOVE_BETTER_ENGINE_MS = 0.010
LIGHT_OF_TENSORFLOW = 0.5
ONE_OP_US = 10
CHAIN_OF_TENSORFLOW = 0.4
OF_ECHO = {"predict": 0.6, "run": 0.4}
BESIDE_LARGE_JSON = 3
START_OF_HELLO, START_MORE_S = 1.5, 0.5
RESIDENT_MB = 200
INSTALLED_MB = 280
OPEN_MS, OPEN_MB = 2, 0.25
BESIDE_LOW_PRIORITY = 1.3
AFTER_UNLOADING = 1.1
ADAPTIVE_OF_NONE = 0.95  # of the requests per second without batching, with any number of callers
ADAPTIVE_AT_LOAD, MANY_CALLERS = 1.0, 32

MET, MISSED, NOT_MEASURED = "met", "**missed**", "not measured"


@dataclasses.dataclass(frozen=True)
class Bar:
    """A measure, our figure and its limit in the same unit; None where one is not measured."""

    measure: str
    ours: float | None
    limit: float | None
    unit: str
    rule: str
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """Whether our figure is within the limit."""
        if self.ours is None or self.limit is None:
            return NOT_MEASURED
        is_met = self.ours >= self.limit if self.at_least else self.ours <= self.limit
        return MET if is_met else MISSED


def all_bars(sections: Mapping[str, Figures]) -> list[Bar]:
    """Return every bar, in the order of the table."""
    return [
        *heavy_bars(sections.get("steps")),
        *light_bars(sections.get("steps")),
        *overhead_bars(sections.get("overhead")),
        *http_bars(sections.get("http"), sections.get("large_json")),
        *start_bars(sections.get("start")),
        one(sections.get("size"), "installed_mb", "installed, with `fast`", INSTALLED_MB, "MB"),
        one(sections.get("opening"), "open_ms", f"open a session of {MODEL}", OPEN_MS, "ms"),
        one(sections.get("opening"), "mb_each", f"memory of a session of {MODEL}", OPEN_MB, "MB"),
        *unloading_bars(sections.get("unloading")),
        *priority_bars("steps beside", sections.get("priority")),
        *priority_bars("predictions beside", sections.get("http_priority")),
        *batching_bars(sections.get("batching")),
    ]


def bars_table(bars: Iterable[Bar]) -> str:
    """Return a row for each bar."""
    rows = [
        [
            bar.measure,
            with_unit(bar.ours, bar.unit),
            f"{'≥' if bar.at_least else '≤'} {with_unit(bar.limit, bar.unit)}",
            bar.rule,
            bar.verdict,
        ]
        for bar in bars
    ]
    return table(["measure", "Runstep", "bar", "which is", ""], rows)


def with_unit(value: float | None, unit: str) -> str:
    """Return a figure with its unit, or a dash."""
    return significant(value) if value is None else f"{significant(value)} {unit}".strip()


def ours(figures: Figures, model: str, batch: int) -> float | None:
    """Return our step time in ms: with clusters where there are any."""
    with_clusters = step_figure(figures, model, "runstep_clusters", batch, "median_ms")
    plain = step_figure(figures, model, "runstep", batch, "median_ms")
    return plain if with_clusters is None else with_clusters


def better_engine(figures: Figures, model: str, batch: int) -> tuple[str, float] | None:
    """Return the faster of ONNX Runtime and OpenVINO, if its answers are right, and its ms."""
    seen = [
        (name, step_figure(figures, model, name, batch, "median_ms"))
        for name in ("onnx_runtime", "openvino")
    ]
    found = [
        (ENGINES[name], ms)
        for name, ms in seen
        if ms is not None and not is_wrong(figures, model, name, batch)
    ]
    return min(found, key=lambda pair: pair[1], default=None)


def heavy_bars(figures: Figures | None) -> Iterator[Bar]:
    """At most 1.15 × the better engine, and never slower than TensorFlow."""
    for model in HEAVY:
        for batch in HEAVY_BATCHES:
            name = f"{model}, batch {batch}"
            mine = ours(figures, model, batch) if figures else None
            best = better_engine(figures, model, batch) if figures else None
            peer = step_figure(figures or {"models": {}}, model, "tensorflow", batch, "median_ms")
            limit = best[1] * OF_BETTER_ENGINE if best else None
            rule = f"{OF_BETTER_ENGINE} × {best[0] if best else 'the better engine'}"
            yield Bar(name, mine, limit, "ms", rule)
            yield Bar(name, mine, peer, "ms", "TensorFlow")


def light_bars(figures: Figures | None) -> Iterator[Bar]:
    """The better engine + 10 µs, and at most half of TensorFlow."""
    for model in LIGHT:
        mine = ours(figures, model, 1) if figures else None
        best = better_engine(figures, model, 1) if figures else None
        peer = step_figure(figures or {"models": {}}, model, "tensorflow", 1, "median_ms")
        limit = best[1] + ABOVE_BETTER_ENGINE_MS if best else None
        engine = best[0] if best else "the better engine"
        yield Bar(f"{model}, batch 1", mine, limit, "ms", f"{engine} + 10 µs")
        half = None if peer is None else peer * LIGHT_OF_TENSORFLOW
        yield Bar(f"{model}, batch 1", mine, half, "ms", f"{LIGHT_OF_TENSORFLOW} × TensorFlow")


def overhead_bars(figures: Figures | None) -> Iterator[Bar]:
    """One small op, and a chain of 1,000 beside TensorFlow, in the caller's thread."""
    mine = figures["runstep"] if figures else {}
    peer = figures.get("tensorflow", {}) if figures else {}
    yield Bar("one small op", mine.get("chain of 1 / caller"), ONE_OP_US, "µs", "")
    chain = "chain of 1000 / caller"
    limit = peer[chain] * CHAIN_OF_TENSORFLOW if chain in peer else None
    rule = f"{CHAIN_OF_TENSORFLOW} × TensorFlow"
    yield Bar("chain of 1,000 small ops", mine.get(chain), limit, "µs", rule)


def http_bars(rates: Figures | None, large_json: Figures | None) -> Iterator[Bar]:
    """Requests per second by those of the echo; the p99 beside large bodies by that of idle."""
    for call, least in OF_ECHO.items():
        share = rates[call]["of_echo"] if rates else None
        yield Bar(f"`:{call}` of a tiny model", share, least, "", "of a bare echo", at_least=True)
    busy = list(large_json["rows"].values())[-1] if large_json else {"p99_of_idle": None}
    for ratio, which in p99_ratios(busy):
        rule = f"of the p99 when idle{which}"
        yield Bar("predictions beside 24 MB of JSON", ratio, BESIDE_LARGE_JSON, "×", rule)


def start_bars(figures: Figures | None) -> Iterator[Bar]:
    """The first prediction by a bare FastAPI application; memory once everything is compiled."""
    if figures and figures["model"] != MODEL:
        figures = None
    limit = figures["hello_s"] * START_OF_HELLO + START_MORE_S if figures else None
    first = figures["predict_s"] if figures else None
    rule = f"{START_OF_HELLO} × bare FastAPI + {START_MORE_S} s"
    yield Bar(f"start to the first prediction of {MODEL}", first, limit, "s", rule)
    yield one(figures, "settled_mb", f"resident, serving {MODEL}", RESIDENT_MB, "MB")


def unloading_bars(figures: Figures | None) -> Iterator[Bar]:
    """Memory after all models are unloaded, by that before they were loaded."""
    ratio = figures["after_mb"] / figures["before_mb"] if figures else None
    measure = f"memory after {figures['copies'] if figures else 20} models were unloaded"
    yield Bar(measure, ratio, AFTER_UNLOADING, "×", "of that before")


def priority_bars(name: str, figures: Figures | None) -> Iterator[Bar]:
    """The p99 beside low-priority work by that of idle, overall and of tenths of a second."""
    for row, seen in (figures or {}).items():
        if not row.endswith(("low priority", ", low")):
            continue
        tenths = seen["window_p99_of_idle"], ", by tenths of a second"
        for ratio, which in (*p99_ratios(seen), tenths):
            rule = f"of idle{which}"
            yield Bar(f"p99 of {name} {row}", ratio, BESIDE_LOW_PRIORITY, "×", rule)


def p99_ratios(row: Mapping[str, Any]) -> Iterator[tuple[float | None, str]]:
    """Yield the p99 by that of idle, with the end of its rule.

    The second is that of the time in which no core of the machine stood still, if it is known
    (bench/stalls.py).
    """
    yield row["p99_of_idle"], ""
    if "still_p99_of_idle" in row:
        yield row["still_p99_of_idle"], ", while no core stood still"


def batching_bars(figures: Figures | None) -> Iterator[Bar]:
    """Adaptive batching by none: never much less, and more where many callers come together."""
    for model, by_callers in (figures or {}).items():
        for callers, modes in by_callers.items():
            is_load = int(callers) >= MANY_CALLERS
            limit = ADAPTIVE_AT_LOAD if is_load else ADAPTIVE_OF_NONE
            measure = f"adaptive batching, {model}, {callers} callers"
            share = modes["adaptive"]["of_none"]
            yield Bar(measure, share, limit, "×", "the requests/s without", at_least=True)


def one(figures: Any, key: str, measure: str, limit: float, unit: str) -> Bar:
    """Return the bar of a single figure with a fixed limit."""
    return Bar(measure, figures[key] if figures else None, limit, unit, "")
