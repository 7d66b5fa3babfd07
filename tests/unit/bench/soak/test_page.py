"""The table of the soak's runs."""

from __future__ import annotations

from bench.soak.page import HEAD, PAGE, read_runs, run_of, run_table, with_runs

FIGURES = {
    "minutes": [{"resident MB": "200.5"}, {"resident MB": "201.0"}],
    "requests": {"a": 1000, "b": 234},
    "wrong": 0,
    "failed": {},
    "explained": {"UNAVAILABLE": 2},
    "growth": 0.0123,
    "start": {"threads": 30, "descriptors": 40},
    "end": {"threads": 29, "descriptors": 38},
}


def test_a_run_is_a_row() -> None:
    run = run_of(FIGURES, "2026-01-02", 20)
    cells = run_table([run]).splitlines()[-1].strip("| ").split(" | ")
    assert len(cells) == len(HEAD)
    assert cells == [
        "2026-01-02", "20", "1,234", "0", "0", "2", "+1.2%", "200.5; 201", "30; 29", "40; 38",
    ]  # fmt: skip


def test_a_short_run_has_no_growth() -> None:
    run = run_of(FIGURES | {"growth": None}, "2026-01-02", 2)
    assert " | – | " in run_table([run])


def test_the_page_has_the_table_of_the_runs() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_runs(text, read_runs()) == text
    assert "<!-- soak -->" in text
