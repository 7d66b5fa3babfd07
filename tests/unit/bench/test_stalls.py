"""Stalls of the machine: how they are noticed, and what they change in figures."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bench.measure import WINDOW_SECONDS, Window, in_turns
from bench.stalls import (
    AFTERWARDS_SECONDS,
    LATE_SECONDS,
    NOT_ALLOWED,
    PERIOD_SECONDS,
    ROOT,
    Stalls,
    cores_awake,
    is_disturbed,
    late_wake_ups,
    latencies_beside_stalls,
    watched,
)
from bench.tables import latency_table


def test_a_wake_up_is_noted_if_it_is_late() -> None:
    now = 50.0
    late = iter([0.0, 0.5 * LATE_SECONDS, 0.02, 0.0, 0.01])

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds + next(late)

    seen = late_wake_ups(lambda: now, sleep)
    due = 50 + 3 * PERIOD_SECONDS + 0.5 * LATE_SECONDS
    assert next(seen) == pytest.approx((due, due + 0.02))
    begin, end = next(seen)
    assert (end - begin, end) == (pytest.approx(0.01), now)


def test_a_watcher_that_can_not_run_notes_when(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "0"
    command = [sys.executable, "-m", "bench.stalls", "--watch", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as watcher:
        try:
            assert watcher.stdout is not None
            if not watcher.stdout.read(1):
                assert watcher.wait(30) == NOT_ALLOWED
                pytest.skip("this process may not have the highest priority")
            time.sleep(0.05)
            stopped = time.perf_counter()
            watcher.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            watcher.send_signal(signal.SIGCONT)
            went_on = time.perf_counter()
            while not (Stalls([file]).seen()[:, 1] > stopped + 0.2).any():
                assert time.perf_counter() < went_on + 30
                time.sleep(0.01)
        finally:
            watcher.kill()
    begin = next(begin for begin, end in Stalls([file]).seen() if end > stopped + 0.2)
    assert begin < stopped + 0.1


def test_a_line_that_is_being_written_is_no_stall_yet(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "0"
    file.write_text("1.5 1.75\n2.5 2.")
    assert Stalls([file]).seen().tolist() == [[1.5, 1.75]]


def test_without_the_priority_nothing_is_known() -> None:
    with watched() as stalls:
        seen = stalls.seen()
    assert stalls.is_known or not seen.size


@pytest.mark.parametrize(
    ("begin", "end", "disturbs"),
    [
        (9.0, 9.9 - AFTERWARDS_SECONDS, False),
        (9.0, 10.0 - AFTERWARDS_SECONDS / 2, True),
        (10.01, 10.02, True),
        (10.09, 12.0, True),
        (10.11, 10.2, False),
    ],
)
def test_a_stall_disturbs_what_is_due_in_it_or_soon_after(
    begin: float, end: float, disturbs: bool
) -> None:
    window = Window(10.0, WINDOW_SECONDS, [0.001])
    assert is_disturbed(window, np.array([[begin, end]])) is disturbs
    assert not is_disturbed(window, Stalls().seen())


def windows(*latencies: float) -> list[Window]:
    """Windows of one run, which follow each other from 0 s on."""
    return [
        Window(number * WINDOW_SECONDS, WINDOW_SECONDS, [each])
        for number, each in enumerate(latencies)
    ]


def test_figures_without_what_stalls_disturb(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "0"
    file.write_text("0.13 0.15\n")  # in the second window of all rows
    rows = {
        "idle": windows(0.001, 0.004),
        "busy": windows(0.002, 0.002),
        "disturbed": windows(0.1, 0.1)[1:],
    }
    figures = latencies_beside_stalls(rows, Stalls([file]))
    assert figures["busy"]["p99_of_idle"] == pytest.approx(0.5)
    assert figures["busy"]["still_p99_of_idle"] == pytest.approx(2)
    assert figures["busy"]["still_share"] == 0.5
    assert figures["disturbed"]["still_share"] == 0
    assert "still_p99_ms" not in figures["disturbed"]
    table = latency_table(figures)
    assert "2.00 (2.00); 50 %" in table
    assert "not known; 0 %" in table


def test_nothing_is_said_of_stalls_that_can_not_be_known() -> None:
    figures = latencies_beside_stalls({"idle": windows(0.001)}, Stalls())
    assert "still_share" not in figures["idle"]
    assert "stood still" not in latency_table(figures)


def test_cores_stay_awake_while_the_device_is_open(tmp_path: pathlib.Path) -> None:
    device = tmp_path / "latency"
    device.touch()
    with cores_awake(device):
        assert device.read_bytes() == bytes(4)
        assert str(device) in {
            os.readlink(each) for each in pathlib.Path("/proc/self/fd").iterdir() if each.exists()
        }
    with cores_awake(tmp_path / "no such folder" / "latency"):
        pass  # nothing to ask


def test_windows_have_the_instants_of_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.measure.TURN_SECONDS", 0.5)
    monkeypatch.setattr("bench.measure.SETTLE_SECONDS", 0.05)
    began: list[float] = []
    rows = {"idle": contextlib.nullcontext}
    seen = in_turns(rows, lambda: began.append(time.perf_counter()), 0.5, 0.01)["idle"]
    assert len(seen) >= 4
    for window in seen:
        end = window.begin + window.seconds + max(window.latencies)
        inside = sum(window.begin <= each <= end for each in began)
        assert inside >= len(window.latencies)
