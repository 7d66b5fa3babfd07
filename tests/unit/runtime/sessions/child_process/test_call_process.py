"""Calls that a child process runs; the functions are those of this module."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from runtime.errors import UnavailableError
from runtime.sessions.child_process.call_process import CallProcess, CallResult
from tests.unit.runtime.sessions.child_process.child_processes import is_running, until


def _double(data: Any, arrays: list[np.ndarray]) -> CallResult:
    return CallResult({"was": data}, [2 * array for array in arrays])


def _fail(data: Any, arrays: list[np.ndarray]) -> CallResult:
    raise ValueError("no")


def _end(data: Any, arrays: list[np.ndarray]) -> CallResult:
    os.kill(os.getpid(), data)
    return _double(data, arrays)


def _priority(data: Any, arrays: list[np.ndarray]) -> CallResult:
    return CallResult([os.getpid(), os.getpriority(os.PRIO_PROCESS, 0)], [])


CALLS = {"double": _double, "fail": _fail, "end": _end, "priority": _priority}


@pytest.fixture
def process() -> Iterator[CallProcess]:
    found = CallProcess("test", __name__)
    until(lambda: found.call("double", 0, []))
    yield found
    found.close()


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_a_call_returns_data_and_arrays_of_its_own(process: CallProcess, size: int) -> None:
    arrays = [np.arange(size, dtype=np.float32), np.array([b"ab"], object)[:0], np.int8(3)]
    first = process.call("double", "given", arrays)
    second = process.call("double", None, [np.zeros(size, np.float32)])
    assert first is not None and second is not None
    assert first.data == {"was": "given"}
    np.testing.assert_array_equal(first.arrays[0], 2 * arrays[0])
    assert first.arrays[1].shape == (0,) and first.arrays[2] == 6
    assert all(array.flags.writeable for array in first.arrays)


def test_a_child_of_normal_priority_has_that_of_its_parent() -> None:
    process = CallProcess("test", __name__, low_priority=False)
    until(lambda: process.call("double", 0, []))
    found = process.call("priority", None, [])
    process.close()
    assert found is not None and found.data[1] == os.getpriority(os.PRIO_PROCESS, 0)


def test_the_child_has_low_priority(process: CallProcess) -> None:
    found = process.call("priority", None, [])
    assert found is not None
    assert found.data == [process.process_id, 19]


def test_what_raises_is_for_the_caller(process: CallProcess) -> None:
    assert process.call("fail", None, []) is None
    assert process.call("unknown", None, []) is None
    assert process.call("double", None, []) == ({"was": None}, [])


def test_the_first_calls_do_not_wait_for_the_child() -> None:
    process = CallProcess("test", __name__)
    try:
        assert process.process_id is None
        assert process.call("double", None, []) is None
        assert process.process_id is not None
    finally:
        process.close()


def test_a_child_that_was_killed_leaves_the_work_to_the_caller(process: CallProcess) -> None:
    child = process.process_id
    assert child is not None
    assert process.call("end", int(signal.SIGKILL), []) is None
    assert not is_running(child)
    assert process.process_id is None  # until the pause before the next start has passed
    assert process.call("double", None, []) is None
    process._next_start = 0.0
    until(lambda: process.call("double", None, []))
    assert process.process_id != child


def test_work_that_crashes_the_child_is_not_repeated(process: CallProcess) -> None:
    with pytest.raises(UnavailableError, match=f"has ended with code -{int(signal.SIGABRT)}"):
        process.call("end", int(signal.SIGABRT), [])


def test_a_closed_process_starts_no_child(process: CallProcess) -> None:
    child = process.process_id
    assert child is not None
    process.close()
    assert not is_running(child)
    process._next_start = 0.0
    assert process.call("double", None, []) is None
    assert process.process_id is None


def test_a_module_that_can_t_be_imported_leaves_the_work_to_the_caller() -> None:
    process = CallProcess("test", f"{__name__}_missing")
    try:
        assert process.call("double", None, []) is None
        child = process.process_id
        assert child is not None
        until(lambda: process.call("double", None, []) or process.process_id is None)
        assert not is_running(child)
    finally:
        process.close()


def test_without_an_interpreter_there_is_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    process = CallProcess("test", __name__)
    assert process.call("double", None, []) is None
    assert process.process_id is None
