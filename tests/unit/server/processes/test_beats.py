"""The time since a process has shown that it runs."""

from __future__ import annotations

import pytest

from server.processes import beats
from server.processes.beats import seconds_since_beat
from server.processes.host_table import Row


def test_how_long_ago_a_beat_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beats, "beat_now", lambda: 10_000)
    assert seconds_since_beat(Row(beat=9_750)) == 0.25
    assert seconds_since_beat(Row(beat=0)) == 0.0
