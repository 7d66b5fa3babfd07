"""The script for wrk, and what it prints."""

from __future__ import annotations

import pathlib

import pytest

from bench.fronts.requests import HttpRequest
from bench.http.wrk import figures_of, script

PRINTED = """Running 1s test @ http://127.0.0.1:8501/
{"requests": 3000, "micros": 1500000, "p50": 410, "p99": 3430, "errors": ERRORS}
"""


def test_the_script_has_the_headers_and_the_file() -> None:
    text = script(HttpRequest("/", b"", {"Content-Type": "a/b"}), pathlib.Path("/x/body"))
    assert 'wrk.headers["Content-Type"] = "a/b"' in text
    assert 'io.open("/x/body", "rb")' in text


def test_figures_are_read_from_the_last_line() -> None:
    found = figures_of(PRINTED.replace("ERRORS", "0"))
    assert found == {"per_second": 2000, "p50_ms": 0.41, "p99_ms": 3.43}


def test_a_failed_request_ends_the_run() -> None:
    with pytest.raises(RuntimeError, match="2 requests failed"):
        figures_of(PRINTED.replace("ERRORS", "2"))
