"""The tables in the documents are those of the committed figures."""

from __future__ import annotations

import pytest

from bench.readme_tables import MARKED, PAGES, TABLES, read_results, with_tables

RESULTS = {"sections": {"size": {"installed_mb": 255.3, "largest": {"numpy": 71.4}}}}
SENTENCE = "Installed with the extra `fast`: 255 MB (numpy 71)."


def test_text_between_markers_is_replaced_and_the_rest_is_kept() -> None:
    text = "before\n<!-- bench: size -->\nold\n<!-- /bench -->\nafter\n"
    expected = f"before\n<!-- bench: size -->\n{SENTENCE}\n<!-- /bench -->\nafter\n"
    assert with_tables(text, RESULTS) == expected
    assert with_tables(expected, RESULTS) == expected


def test_an_unknown_marker_is_an_error() -> None:
    with pytest.raises(KeyError, match="speed"):
        with_tables("<!-- bench: speed -->\n<!-- /bench -->\n", RESULTS)


def test_a_table_without_figures_is_an_error() -> None:
    with pytest.raises(KeyError, match="opening"):
        with_tables("<!-- bench: opening -->\n<!-- /bench -->\n", RESULTS)


def test_the_documents_show_the_committed_figures() -> None:
    results = read_results()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert with_tables(text, results) == text, f"{page.name}: run python -m bench --rewrite"


def test_every_table_is_in_a_document() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = [match[1] for text in texts for match in MARKED.finditer(text)]
    assert sorted(shown) == sorted(TABLES)
