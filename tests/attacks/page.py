"""The table of attacks in docs/robustness.md, between `<!-- attacks -->` and `<!-- /attacks -->`.

bench/attacks.json holds the figures of the last run in full size; an attack without a figure there
has a dash.
"""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

from bench.tables import table
from tests.attacks.attack import Attack
from tests.attacks.rows import SECTIONS

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "robustness.md"
FIGURES = ROOT / "bench" / "attacks.json"
MARKED = re.compile(r"<!-- attacks -->\n.*?<!-- /attacks -->\n", re.DOTALL)
HEAD = (
    "input", "what happens", "which limit", "answer", "seconds", "slowest /healthz ms",
    "resident MB before, peak, after",
)  # fmt: skip


def read_figures() -> dict[str, Any]:
    """Return the figures by the attacks' keys, and those of the machine."""
    figures: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return figures


def row(attack: Attack, figures: dict[str, Any]) -> list[str]:
    """Return the row of an attack."""
    sizes = f"{attack.full:,}" if isinstance(attack.full, int) else str(attack.full)
    said = [
        attack.input.format(sizes),
        attack.outcome,
        ", ".join(f"`{limit}`" for limit in attack.limits) or "–",
    ]
    seen = figures["attacks"].get(attack.key)
    if seen is None:
        return [*said, " or ".join(attack.answers), "–", "–", "–"]
    memory = "; ".join(f"{seen[key] / 1e6:.0f}" for key in ("before", "peak", "after"))
    stall = "–" if seen["stall_ms"] is None else f"{seen['stall_ms']:.0f}"
    return [*said, seen["answer"], f"{seen['seconds']:.1f}", stall, memory]


def tables(figures: dict[str, Any]) -> str:
    """Return the table of each section below its heading."""
    return "\n\n".join(
        f"### {section}\n\n{table(HEAD, [row(attack, figures) for attack in attacks])}"
        for section, attacks in SECTIONS.items()
    )


def with_table(text: str) -> str:
    """Return the page with the tables of today's attacks and figures."""
    made = f"<!-- attacks -->\n\n{tables(read_figures())}\n\n<!-- /attacks -->\n"
    return MARKED.sub(lambda _: made, text)


def rewrite() -> None:
    """Write the tables into the page."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
