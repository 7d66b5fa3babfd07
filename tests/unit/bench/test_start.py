"""The processes that the benchmark of the start measures."""

from __future__ import annotations

import pytest

from bench.serving import ROOT
from bench.start import environment


def test_measured_processes_may_write_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("KEPT", "yes")
    found = environment()
    assert "PYTHONDONTWRITEBYTECODE" not in found
    assert (found["PYTHONPATH"], found["KEPT"]) == (str(ROOT), "yes")
