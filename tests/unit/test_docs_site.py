"""The documentation site: links are checked, pages are copied right, the reference is complete."""

from __future__ import annotations

import pathlib

import pytest

from runtime.errors import Code
from server.settings import Settings
from tools.docs_site import drawings, reference
from tools.docs_site.blocks import Block, counts
from tools.docs_site.links import check_site
from tools.docs_site.pages import PLACES, copied

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="other.html#part">', ""),
        ('<a href="#here"><p id="here">', ""),
        ('<a href="https://example.com/x">', ""),
        ('<a href="missing.html">', "index.html: missing.html leads nowhere"),
        ('<a href="other.html#none">', "index.html: other.html#none has no such anchor"),
        ('<a href="/other.html">', "index.html: /other.html is absolute"),
        (
            '<script src="https://cdn.example/x.js">',
            "loads https://cdn.example/x.js from elsewhere",
        ),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "from elsewhere"),
        ('<img src="missing.svg">', "index.html: missing.svg leads nowhere"),
    ],
)
def test_links_and_resources(tmp_path: pathlib.Path, page: str, fault: str) -> None:
    (tmp_path / "index.html").write_text(page)
    (tmp_path / "other.html").write_text('<h2 id="part">Part</h2>')
    count, faults = check_site(tmp_path)
    assert (faults == []) if not fault else (fault in faults[0])
    assert count == (0 if "//" in page else 1)


def test_links_between_pages_are_those_of_the_site() -> None:
    text = "[a](docs/sessions.md#limits) [b](https://x.example) ![c](c.svg) [`d`](configs/d.yaml)"
    assert copied("README.md", text) == (
        "[a](sessions.md#limits) [b](https://x.example) ![c](c.svg) `d`"
    )
    drawing = "<!-- drawing: predict.svg the way of a prediction -->"
    assert copied("docs/explanation/how_a_step_runs.md", drawing) == (
        "![the way of a prediction](predict.svg)"
    )
    assert copied("docs/client.md", "[s](../SECURITY.md)") == "[s](security.md)"
    assert copied("runtime/README.md", "[d](DIFFERENCES.md)") == "[d](differences.md)"


def test_every_page_of_the_navigation_exists_once() -> None:
    assert len(set(PLACES.values())) == len(PLACES)
    missing = [p for p in PLACES if not p.startswith("generated/") and not (ROOT / p).exists()]
    assert missing == []


def test_the_reference_of_settings_has_every_key_with_its_comment() -> None:
    page = reference.settings(ROOT)
    for name in Settings.model_fields:
        assert f"`{name}`" in page
    assert "| `rest.port` | integer or `free` | `8501` |" in page
    assert "`--rest_api_port`" in page
    assert "larger request bodies are refused with 413" in page


def test_the_reference_of_errors_and_commands() -> None:
    page = reference.errors()
    assert all(f"`{code.name}`" in page for code in Code if code is not Code.OK)
    assert "| `NOT_FOUND` | 5 | 404 | `NotFoundError` |" in page
    assert "## `runstep serve`" in reference.commands()


def test_the_reference_of_metrics_has_both_groups() -> None:
    page = reference.metrics()
    assert "| `runstep_thread_pool_queued` | gauge | Tasks that wait |" in page
    assert "| `:tensorflow:serving:request_latency` | histogram |" in page
    assert "runstep_rpc_errors_total" in page


def test_the_floors_are_drawn_from_the_test_that_keeps_them() -> None:
    drawing = drawings.floors(ROOT)
    assert drawing.startswith("<svg ")
    assert "server.console" in drawing and "runtime.kernels" in drawing


def test_blocks_are_counted_by_what_is_done_with_them() -> None:
    def block(language: str, marker: str = "") -> Block:
        return Block("page", language, "", 1, marker)

    found = counts(
        [
            block("bash"),
            block("json"),
            block("json"),
            block("bash", "not run: Docker"),
            block("yaml"),
        ]
    )
    assert found == {"run": 1, "compared": 1, "read": 2, "not run": 1}
