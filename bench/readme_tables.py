"""The documents' tables of figures, between markers: `<!-- bench: NAME -->` … `<!-- /bench -->`.

`bench/results.json` holds the figures; a test checks that the tables are those of that file.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from bench.bars import all_bars, bars_table
from bench.machine import disturbance, in_words
from bench.tables import (
    batching_table,
    front_table,
    http_rate_table,
    latency_table,
    load_table,
    opening_table,
    overhead_table,
    start_table,
    step_table,
    unloading_table,
)

ROOT = pathlib.Path(__file__).parent.parent
RESULTS = ROOT / "bench" / "results.json"
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
BATCHES = (1, 8, 32)
MARKED = re.compile(r"<!-- bench: (\w+) -->\n(.*?)<!-- /bench -->\n", re.DOTALL)
Results = Mapping[str, Any]  # {"machine": …, "sections": {section: figures}}

TABLES: dict[str, Callable[[Results], str]] = {
    "machine": lambda results: machine_sentence(results),
    "steps": lambda results: step_table(results["sections"]["steps"], BATCHES),
    "tails": lambda results: step_table(results["sections"]["steps"], BATCHES, "p99_ms"),
    "load": lambda results: load_table(results["sections"]["steps"]),
    "overhead": lambda results: overhead_table(results["sections"]["overhead"]),
    "http": lambda results: http_rate_table(results["sections"]["http"]),
    "fronts": lambda results: front_table(results["sections"]["fronts"]),
    "batching": lambda results: batching_table(results["sections"]["batching"]),
    "large_json": lambda results: latency_table(results["sections"]["large_json"]["rows"]),
    "start": lambda results: start_table(results["sections"]["start"]),
    "size": lambda results: size_sentence(results),
    "opening": lambda results: opening_table(results["sections"]["opening"]),
    "unloading": lambda results: unloading_table(results["sections"]["unloading"]),
    "priority": lambda results: latency_table(results["sections"]["priority"]),
    "http_priority": lambda results: latency_table(results["sections"]["http_priority"]),
    "bars": lambda results: bars_table(all_bars(results["sections"])),
}


def machine_sentence(results: Results) -> str:
    """Return on what the figures were measured, and how fast the reference product was."""
    steps = results["sections"]["steps"]
    why, gemm = disturbance(results["machine"], steps), steps["gemm_gflops"]
    warning = f"**Other work may have disturbed the run: {why}.** "
    where = in_words(results["machine"])
    return (
        f"{warning if why else ''}Measured on {where}. The reference, a product of two 1024²"
        f" float32 matrices by numpy in turns with the models, reached {gemm['median']:.0f}"
        f" GFLOP/s (80 % of the runs {gemm['p10']:.0f} to {gemm['p90']:.0f})."
    )


def size_sentence(results: Results) -> str:
    """Return the installed size."""
    figures = results["sections"]["size"]
    largest = list(figures["largest"].items())[:3]
    named = ", ".join(f"{name} {mb:.0f}" for name, mb in largest)
    return f"Installed with the extra `fast`: {figures['installed_mb']:.0f} MB ({named})."


def with_tables(text: str, results: Results) -> str:
    """Return the text with each marked table replaced by that of the results.

    Raises:
        KeyError: A marker names no table of TABLES, or its section has no figures.
    """

    def replacement(match: re.Match[str]) -> str:
        name = match[1]
        return f"<!-- bench: {name} -->\n{TABLES[name](results)}\n<!-- /bench -->\n"

    return MARKED.sub(replacement, text)


def read_results(file: pathlib.Path = RESULTS) -> Results:
    """Return the figures of a run."""
    results: Results = json.loads(file.read_text(encoding="utf-8"))
    return results


def update_pages(results: Results) -> None:
    """Write the tables into the documents."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        page.write_text(with_tables(text, results), encoding="utf-8")
