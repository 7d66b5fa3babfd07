"""The first session limits BLAS to one thread, unless the environment says otherwise."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest
import threadpoolctl

from runtime.foundation import blas_threads
from runtime.foundation.blas_threads import BlasThreads
from runtime.foundation.errors import InvalidArgumentError

ROOT = pathlib.Path(__file__).parents[4]
IN_EFFECT = (blas_threads.SWITCH, "OMP_NUM_THREADS", *blas_threads._BLAS_VARIABLES)
PROGRAM = """
import json, os, sys
import numpy as np
from runtime.api import SessionOptions, new_session
is_imported = "threadpoolctl" in sys.modules
sessions = [new_session(SessionOptions())]
from runtime.foundation.blas_threads import is_blas_single
answer = {"single": is_blas_single(), "imported": [is_imported, "threadpoolctl" in sys.modules]}
import threadpoolctl
blas = threadpoolctl.ThreadpoolController().select(user_api="blas")
answer["threads"] = [each["num_threads"] for each in blas.info()]
import threading
helper = threading.Thread(target=blas.limit, kwargs={"limits": 2})
helper.start(); helper.join()
sessions.append(new_session(SessionOptions()))
answer["later"] = [each["num_threads"] for each in blas.info()]
answer["single_later"] = is_blas_single()
print(json.dumps(answer))
"""


class Library:
    def __init__(self, num_threads: int | None) -> None:
        self.num_threads = num_threads
        self.setters: list[str] = []

    def set_num_threads(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self.setters.append(threading.current_thread().name)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Library]]:
    """Return a function that replaces the loaded libraries by some with these thread counts."""

    def replace(*counts: int | None) -> list[Library]:
        libraries = [Library(count) for count in counts]
        monkeypatch.setattr(blas_threads, "_loaded_libraries", lambda: libraries)
        return libraries

    return replace


def run(**environment: str) -> dict[str, object]:
    """Run the program with only these variables for threads; return what it saw."""
    inherited = {name: value for name, value in os.environ.items() if name not in IN_EFFECT}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=ROOT,
        env=inherited | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def loaded_libraries() -> list[str]:
    """The names of the BLAS libraries that numpy has loaded."""
    np.dot(np.ones((1, 1)), np.ones((1, 1)))
    return [each["internal_api"] for each in threadpoolctl.threadpool_info()]


@pytest.mark.skipif("openblas" not in loaded_libraries(), reason="numpy uses another BLAS library")
class TestInAProgram:
    def test_the_first_session_limits_blas_and_the_host_may_change_it_later(self) -> None:
        seen = run()
        assert seen["threads"] == [1]
        assert seen["single"] is True
        assert seen["imported"] == [False, True]
        assert seen["later"] == [2]
        assert seen["single_later"] is False

    @pytest.mark.parametrize("switch", ["0", "host"])
    def test_the_switch_keeps_the_setting_of_the_host(self, switch: str) -> None:
        seen = run(RUNSTEP_BLAS_THREADS=switch, OPENBLAS_NUM_THREADS="2", MKL_NUM_THREADS="2")
        started_with = min(2, os.cpu_count() or 1)
        assert seen["threads"] == [started_with]
        assert seen["single"] is (started_with == 1)

    def test_the_switch_chooses_a_number(self) -> None:
        seen = run(RUNSTEP_BLAS_THREADS="2", OMP_NUM_THREADS="1")
        assert (seen["threads"], seen["single"]) == ([2], False)

    def test_nothing_is_loaded_if_the_environment_limits_blas(self) -> None:
        seen = run(OMP_NUM_THREADS="1")
        assert (seen["threads"], seen["single"]) == ([1], True)
        assert seen["imported"] == [False, False]


def test_several_threads_limit_once(load: Callable[..., list[Library]]) -> None:
    (library,) = load(4)
    blas = BlasThreads({})
    callers = [threading.Thread(target=blas.limit) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert library.num_threads == 1
    assert library.setters == ["tf_blas_threads"]
    library.num_threads = 3
    blas.limit()
    assert library.num_threads == 3


def test_every_loaded_library_is_limited(load: Callable[..., list[Library]]) -> None:
    libraries = load(1, 4)
    blas = BlasThreads({})
    blas.limit()
    assert [each.num_threads for each in libraries] == [1, 1]
    assert blas.is_single()
    assert libraries[0].setters == []


def test_a_number_that_is_not_known_is_not_one(load: Callable[..., list[Library]]) -> None:
    load(1, None)
    assert not BlasThreads({}).is_single()
    load()
    assert not BlasThreads({}).is_single()


@pytest.mark.parametrize(
    ("environment", "is_single"),
    [
        ({"OMP_NUM_THREADS": "1"}, True),
        ({"OPENBLAS_NUM_THREADS": "4", "OMP_NUM_THREADS": "1"}, False),
        ({"OPENBLAS_NUM_THREADS": "1"}, False),  # MKL would use more
        ({"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "BLIS_NUM_THREADS": "1"}, True),
        ({}, False),
    ],
)
def test_environments_that_limit_every_library(
    environment: dict[str, str], is_single: bool, load: Callable[..., list[Library]]
) -> None:
    (library,) = load(4)
    BlasThreads(environment).limit()
    assert (library.num_threads == 4) is is_single


@pytest.mark.parametrize("text", ["two", "-1", "1.5"])
def test_a_wrong_switch_is_an_error(text: str, load: Callable[..., list[Library]]) -> None:
    load(4)
    blas = BlasThreads({"RUNSTEP_BLAS_THREADS": text})
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match=f'RUNSTEP_BLAS_THREADS .* got "{text}"'):
            blas.limit()


def test_an_unknown_blas_is_logged_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class NoLibrary:
        lib_controllers = ()

        def select(self, **_: str) -> NoLibrary:
            return self

    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", NoLibrary)
    caplog.set_level(logging.DEBUG, blas_threads.__name__)
    blas = BlasThreads({})
    for _ in range(2):
        blas.limit()
        assert not blas.is_single()
    assert [record.levelname for record in caplog.records] == ["DEBUG"]
    assert "no known BLAS library" in caplog.text
