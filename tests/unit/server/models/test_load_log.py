"""What the log says of a load."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from server.models import load_log
from server.models.load_log import LoadLog, megabytes

FILES = frozenset({("a", 1, 97_000_000, 0), ("b", 2, 1_000_000, 0)})


def test_a_load_is_logged_with_its_size_time_and_memory(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with LoadLog("resnet", 3, Path("/m/3"), FILES) as log:
        log.done()
    first, last = caplog.messages
    assert first == "Loading version 3 of model resnet from /m/3 (98 MB)"
    assert last.startswith("Loaded version 3 of model resnet from /m/3 in 0.0")
    assert last.endswith(" MB more memory")


def test_a_long_load_is_reported(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(load_log, "FIRST_SECONDS", 0.001)
    reported = threading.Event()
    monkeypatch.setattr(
        caplog.handler, "emit", lambda record: "Still" in record.getMessage() and reported.set()
    )
    with LoadLog("resnet", 3, Path("/m/3"), FILES):
        assert reported.wait(30)


@pytest.mark.parametrize(("size", "text"), [(0, "0.0 MB"), (1_550_000, "1.6 MB"), (98e6, "98 MB")])
def test_megabytes(size: int, text: str) -> None:
    assert megabytes(size) == text
