"""Inputs count once, and the page has the table."""

from __future__ import annotations

import pathlib

import pytest

from tests.fuzz import totals
from tests.fuzz.targets.registered import TARGETS


def test_the_page_has_the_totals() -> None:
    assert totals.table_in_page() == totals.table(TARGETS)


def test_inputs_that_were_run_twice_count_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- fuzz -->\nold\n<!-- /fuzz -->\nafter\n")
    monkeypatch.setattr(totals, "TOTALS", tmp_path / "totals.json")
    monkeypatch.setattr(totals, "PAGE", page)
    assert totals.next_seed("a") == 1
    for seed, first, inputs in ((1, 0, 100), (1, 50, 100), (1, 150, 10), (1, 500, 1), (3, 0, 7)):
        totals.add_run("a", seed, first, inputs, {"a": "letters", "b": "more"})
    assert totals.read_totals() == {"a": [[1, 0, 160], [1, 500, 1], [3, 0, 7]]}
    assert totals.next_seed("a") == 4
    text = page.read_text()
    assert "| `a` | letters | 168 |\n| `b` | more | 0 |\n<!-- /fuzz -->\nafter\n" in text
    assert text.startswith("before\n<!-- fuzz -->\n| target |")
