"""The runs of the soak in docs/robustness.md, between `<!-- soak -->` and `<!-- /soak -->`.

bench/soak/runs.json holds a summary of each run that was kept with `--write`.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.measure import write_json
from bench.tables import NONE, table

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "robustness.md"
RUNS = pathlib.Path(__file__).parent / "runs.json"
MARKED = re.compile(r"<!-- soak -->\n.*?<!-- /soak -->\n", re.DOTALL)
HEAD = (
    "day", "minutes", "requests", "wrong", "failed", "explained by killed processes", "growth",
    "resident MB, first and last minute", "threads, start and end", "descriptors, start and end",
)  # fmt: skip


def run_of(figures: Mapping[str, Any], day: str, minutes: float) -> dict[str, Any]:
    """Return the summary of a run's figures."""
    rows = figures["minutes"]
    return {
        "day": day, "minutes": minutes, "requests": sum(figures["requests"].values()),
        "wrong": figures["wrong"], "failed": sum(figures["failed"].values()),
        "explained": sum(figures["explained"].values()), "growth": figures["growth"],
        "resident_mb": [float(rows[0]["resident MB"]), float(rows[-1]["resident MB"])],
        "threads": [figures["start"]["threads"], figures["end"]["threads"]],
        "descriptors": [figures["start"]["descriptors"], figures["end"]["descriptors"]],
    }  # fmt: skip


def run_table(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of the runs."""
    rows = [
        [
            run["day"], f"{run['minutes']:g}", f"{run['requests']:,}", run["wrong"], run["failed"],
            run["explained"], NONE if run["growth"] is None else f"{run['growth']:+.1%}",
            *("; ".join(f"{each:g}" for each in run[key])
              for key in ("resident_mb", "threads", "descriptors")),
        ]
        for run in runs
    ]  # fmt: skip
    return table(HEAD, rows)


def read_runs() -> list[dict[str, Any]]:
    """Return the runs that were kept."""
    runs: list[dict[str, Any]] = json.loads(RUNS.read_text(encoding="utf-8"))
    return runs


def with_runs(text: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the page with the table of these runs."""
    return MARKED.sub(lambda _: f"<!-- soak -->\n{run_table(runs)}\n<!-- /soak -->\n", text)


def keep(run: Mapping[str, Any]) -> None:
    """Add a run to the file and to the page."""
    runs = [*read_runs(), run]
    write_json(RUNS, runs)
    PAGE.write_text(with_runs(PAGE.read_text(encoding="utf-8"), runs), encoding="utf-8")
