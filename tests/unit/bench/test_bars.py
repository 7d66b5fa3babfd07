"""Which figures reach their bars."""

from __future__ import annotations

from typing import Any

import pytest

from bench.bars import (
    HEAVY,
    MET,
    MISSED,
    NOT_MEASURED,
    Bar,
    all_bars,
    bars_table,
    batching_bars,
    heavy_bars,
    light_bars,
)


def steps(model: str, **median_ms: float) -> dict[str, Any]:
    """Figures of one model, the same at batch 1 and 8."""
    row = {
        engine: {"batches": {"1": {"median_ms": ms}, "8": {"median_ms": ms}}}
        for engine, ms in median_ms.items()
    }
    return {"models": {model: row}}


@pytest.mark.parametrize(
    ("ours", "limit", "at_least", "verdict"),
    [
        (1.0, 1.0, False, MET),
        (1.01, 1.0, False, MISSED),
        (0.6, 0.6, True, MET),
        (0.59, 0.6, True, MISSED),
        (None, 1.0, False, NOT_MEASURED),
        (1.0, None, True, NOT_MEASURED),
    ],
)
def test_verdicts(ours: float | None, limit: float | None, at_least: bool, verdict: str) -> None:
    assert Bar("x", ours, limit, "ms", "", at_least).verdict == verdict


def test_a_heavy_step_is_compared_with_the_better_engine_and_with_tensorflow() -> None:
    figures = steps(
        "lstm", runstep=5, runstep_clusters=1.1, tensorflow=1, onnx_runtime=2, openvino=1
    )
    rows = [bar for bar in heavy_bars(figures) if bar.measure == "lstm, batch 8"]
    assert [(bar.limit, bar.rule, bar.verdict) for bar in rows] == [
        (pytest.approx(1.15), "1.15 × OpenVINO", MET),
        (1, "TensorFlow", MISSED),
    ]


def test_an_engine_with_wrong_answers_sets_no_bar() -> None:
    figures = steps("lstm", runstep=5, onnx_runtime=2, openvino=1)
    figures["models"]["lstm"]["openvino"]["batches"]["1"]["error"] = 0.5
    limits = {bar.measure: bar.limit for bar in heavy_bars(figures) if bar.rule != "TensorFlow"}
    assert limits["lstm, batch 1"] == pytest.approx(2.3)
    assert limits["lstm, batch 8"] == pytest.approx(1.15)


def test_without_clusters_our_plain_step_counts() -> None:
    figures = steps("lstm", runstep=5, onnx_runtime=2)
    (of_engine, of_tensorflow) = [b for b in heavy_bars(figures) if b.measure == "lstm, batch 1"]
    assert (of_engine.ours, of_engine.verdict) == (5, MISSED)
    assert of_tensorflow.verdict == NOT_MEASURED


def test_a_light_step_may_take_ten_microseconds_more_and_half_of_tensorflow() -> None:
    figures = steps("mlp", runstep_clusters=0.1, tensorflow=0.3, onnx_runtime=0.095)
    rows = [bar for bar in light_bars(figures) if bar.measure == "mlp, batch 1"]
    assert [bar.limit for bar in rows] == [pytest.approx(0.105), pytest.approx(0.15)]
    assert [bar.verdict for bar in rows] == [MET, MET]


def test_only_rows_with_low_priority_have_a_bar() -> None:
    seen = {"p99_of_idle": 1.2, "window_p99_of_idle": 1.4}
    priority = {"idle": seen, "small ops, no priorities": seen, "small ops, low priority": seen}
    bars = [bar for bar in all_bars({"priority": priority}) if bar.ours is not None]
    assert [(bar.measure, bar.verdict) for bar in bars] == [
        ("p99 of steps beside small ops, low priority", MET),
        ("p99 of steps beside small ops, low priority", MISSED),
    ]


def test_the_p99_of_times_without_stalls_has_a_bar_of_its_own() -> None:
    seen = {"p99_of_idle": 1.4, "still_p99_of_idle": 1.2, "window_p99_of_idle": 1.1}
    sections = {
        "priority": {"idle": seen, "small ops, low priority": seen},
        "large_json": {"rows": {"idle": seen, "24 MB": {**seen, "still_p99_of_idle": 3.1}}},
    }
    bars = [bar for bar in all_bars(sections) if bar.ours is not None]
    assert [(bar.ours, bar.rule, bar.verdict) for bar in bars] == [
        (1.4, "of the p99 when idle", MET),
        (3.1, "of the p99 when idle, while no core stood still", MISSED),
        (1.4, "of idle", MISSED),
        (1.2, "of idle, while no core stood still", MET),
        (1.1, "of idle, by tenths of a second", MET),
    ]


def test_the_start_of_another_model_does_not_count() -> None:
    start = {"model": "digits", "hello_s": 0.5, "predict_s": 0.6, "settled_mb": 90}
    assert all(bar.verdict == NOT_MEASURED for bar in all_bars({"start": start}))
    start["model"] = "mobilenet_v2"
    bars = [bar for bar in all_bars({"start": start}) if bar.ours is not None]
    assert [(bar.limit, bar.verdict) for bar in bars] == [(1.25, MET), (200, MET)]


def test_every_bar_is_in_the_table_without_any_figures() -> None:
    lines = bars_table(all_bars({})).splitlines()[2:]
    assert len(lines) > 4 * len(HEAVY)
    assert all(line.endswith("| not measured |") for line in lines)


def test_unloading_may_leave_a_tenth() -> None:
    figures = {"copies": 20, "before_mb": 100, "loaded_mb": 900, "after_mb": 111}
    (bar,) = [bar for bar in all_bars({"unloading": figures}) if bar.ours is not None]
    assert (bar.ours, bar.limit, bar.verdict) == (1.11, 1.1, MISSED)


def test_adaptive_batching_may_lose_a_little_and_wins_at_load() -> None:
    shares = {"1": 0.95, "8": 0.94, "32": 1.0, "128": 0.99}
    figures = {"mlp": {callers: {"adaptive": {"of_none": x}} for callers, x in shares.items()}}
    assert [bar.verdict for bar in batching_bars(figures)] == [MET, MISSED, MET, MISSED]
    assert list(batching_bars(None)) == []
