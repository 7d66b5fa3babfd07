"""Measure predictions over HTTP without batching, with adaptive batching and with parameters.

    python -m bench.batching [--models DIR] [--seconds 4] [--rounds 5] [--callers 1 8 32 128]

Three servers take turns, one for each form of batching; those that have no turn are idle. One load
generator (bench/http/load.py, a process of its own) has as many connections as there are callers,
and each sends a request of one row as soon as it has the answer to the one before. Figures are the
medians of the turns; ratios are to the turn without batching of the same round, and each round
begins with another server. Without `--models`, the digits example is measured.

Bars: adaptive batching never loses more than 5 % of the requests per second, and wins where 32
callers and more come together.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

from bench.bars import bars_table, batching_bars
from bench.http.rates import loaded
from bench.measure import median, median_ratio, write_json
from bench.serving import ROOT, runstep_server
from bench.tables import batching_table

# The shape of one row of each model.
ROWS: dict[str, tuple[int, ...]] = {"mlp": (784,), "mobilenet_v2": (224, 224, 3)}
EXAMPLE = {"digits": (8, 8)}
# TensorFlow Serving's guide: a timeout of 0 gives the best latency where requests are many.
PARAMETERS = """
max_batch_size { value: 32 }
batch_timeout_micros { value: 0 }
max_enqueued_batches { value: 100 }
"""
# Without a deadline: on a busy machine 128 callers of a large model wait for long.
REST = {"host": "127.0.0.1", "timeout_ms": 0}
MODES = ("none", "adaptive", "parameters")
Figures = dict[str, dict[str, dict[str, dict[str, float]]]]


def batching_settings(mode: str, file: pathlib.Path) -> dict[str, object]:
    """Return the settings of one form of batching; `file` has the parameters."""
    if mode == "none":
        return {"enabled": False}
    given = {"parameters_file": str(file)} if mode == "parameters" else {}
    return {"enabled": True, "mode": mode, **given}


def body_of(shape: Sequence[int]) -> str:
    """Return a request of one row, in which every number takes as few characters as possible."""
    row: Any = 1
    for size in reversed(shape):
        row = [row] * size
    return json.dumps({"instances": [row]}, separators=(",", ":"))


def measure(
    folder: pathlib.Path,
    shapes: dict[str, tuple[int, ...]],
    callers: Sequence[int],
    seconds: float,
    rounds: int,
) -> Figures:
    """Return {model: {callers: {mode: {"per_second", "p50_ms", "p99_ms"}}}}."""
    models = [{"name": name, "base_path": str(folder / name)} for name in shapes]
    figures: Figures = {}
    with contextlib.ExitStack() as stack:
        files = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        parameters = files / "parameters.txt"
        parameters.write_text(PARAMETERS)
        served = {
            mode: stack.enter_context(
                runstep_server(
                    {
                        "rest": REST,
                        "models": models,
                        "batching": batching_settings(mode, parameters),
                    }
                )
            )
            for mode in MODES
        }
        for name, shape in shapes.items():
            (files / name).write_text(body_of(shape))
            call = (f"/v1/models/{name}:predict", f"@{files / name}")
            for each in served.values():  # warm up: every size of batch is compiled
                for count in callers:
                    loaded(each.http, *call, count, seconds)
            figures[name] = {}
            for count in callers:
                turns: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
                for number in range(rounds):
                    for mode in in_turn(number):
                        turns[mode].append(loaded(served[mode].http, *call, count, seconds))
                figures[name][str(count)] = medians(turns)
    return figures


def in_turn(number: int) -> tuple[str, ...]:
    """Return the order of a round: what disturbs a place in it affects every form."""
    begin = number % len(MODES)
    return MODES[begin:] + MODES[:begin]


def medians(turns: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Return the medians of the turns of each form, and the ratio of its rate to none's."""
    rates = {mode: [each["per_second"] for each in seen] for mode, seen in turns.items()}
    return {
        mode: {
            **{key: median([turn[key] for turn in seen]) for key in seen[0]},
            "of_none": median_ratio(rates[mode], rates["none"]),
        }
        for mode, seen in turns.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=pathlib.Path, help="folder of exported models")
    parser.add_argument("--only", nargs="*", help="these models")
    parser.add_argument("--callers", nargs="*", type=int, default=[1, 8, 32, 128])
    parser.add_argument("--seconds", type=float, default=4, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    shapes = ROWS if options.models else EXAMPLE
    if options.only:
        shapes = {name: shapes[name] for name in options.only}
    folder = options.models.resolve() if options.models else ROOT / "examples/models"
    figures = measure(folder, shapes, options.callers, options.seconds, options.rounds)
    print(f"{batching_table(figures)}\n\n{bars_table(batching_bars(figures))}")
    if options.json:
        write_json(options.json, figures)


if __name__ == "__main__":
    main()
