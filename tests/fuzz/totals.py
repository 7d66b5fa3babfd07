"""How many inputs of each target have been run: `totals.json`, and its table in the docs.

A run is (seed, first number, number of inputs). Inputs that were run twice count once.
"""

from __future__ import annotations

import fcntl
import json
import pathlib
from collections.abc import Mapping, Sequence

_ROOT = pathlib.Path(__file__).parents[2]
TOTALS = pathlib.Path(__file__).parent / "totals.json"
PAGE = _ROOT / "docs" / "robustness.md"
_BEGIN, _END = "<!-- fuzz -->", "<!-- /fuzz -->"
Run = Sequence[int]


def read_totals() -> dict[str, list[Run]]:
    """Return the runs of each target."""
    text = TOTALS.read_text() if TOTALS.exists() else ""
    found: dict[str, list[Run]] = json.loads(text or "{}")
    return found


def add_run(
    target: str, seed: int, first: int, inputs: int, descriptions: Mapping[str, str]
) -> None:
    """Add a run to the totals, and write the table anew; several processes may do so."""
    with TOTALS.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _add(target, seed, first, inputs)
        _write_page(descriptions)


def _add(target: str, seed: int, first: int, inputs: int) -> None:
    totals = read_totals()
    totals[target] = _joined([*totals.get(target, []), (seed, first, inputs)])
    lines = [f"  {json.dumps(name)}: {json.dumps(runs)}" for name, runs in sorted(totals.items())]
    TOTALS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def next_seed(target: str) -> int:
    """Return a seed that no run of the target had."""
    return 1 + max((run[0] for run in read_totals().get(target, ())), default=0)


def number_of_inputs(runs: Sequence[Run]) -> int:
    """Return how many different inputs the runs had."""
    return sum(inputs for _, _, inputs in _joined(runs))


def _joined(runs: Sequence[Run]) -> list[Run]:
    """Return runs of the same inputs that do not overlap, in order."""
    joined: list[tuple[int, int, int]] = []
    for seed, first, inputs in sorted(map(tuple, runs)):
        if joined:
            last_seed, last_first, last_inputs = joined[-1]
            if last_seed == seed and first <= last_first + last_inputs:
                end = max(last_first + last_inputs, first + inputs)
                joined[-1] = seed, last_first, end - last_first
                continue
        joined.append((seed, first, inputs))
    return list(joined)


def table(descriptions: Mapping[str, str]) -> str:
    """Return the table of all targets; `descriptions` says what each one mutates and checks."""
    totals = read_totals()
    rows = [
        f"| `{name}` | {text} | {number_of_inputs(totals.get(name, ())):,} |"
        for name, text in descriptions.items()
    ]
    return "\n".join(("| target | inputs are | run |", "| --- | --- | ---: |", *rows))


def _write_page(descriptions: Mapping[str, str]) -> None:
    """Put the table in its place in the page."""
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    _, _, after = rest.partition(_END)
    PAGE.write_text(f"{before}{_BEGIN}\n{table(descriptions)}\n{_END}{after}")


def table_in_page() -> str:
    """Return the table that the page has."""
    return PAGE.read_text().partition(_BEGIN)[2].partition(_END)[0].strip()
