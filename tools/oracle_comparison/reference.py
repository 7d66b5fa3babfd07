"""TensorFlow's answers, from a process that is restarted when a case crashes it.

Answers are stored in a folder (git-ignored), so that a second run needs TensorFlow for new cases
only.
"""

from __future__ import annotations

import os
import pathlib
import pickle
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from tests.conformance.case import Answer, Case
from tools.oracle_comparison.wire import pack_case, read_frame, unpack_answer, write_frame

TIMEOUT = 30  # seconds for one case
TIMEOUT_OF_OP = 120  # seconds for the cases of one op without a stored answer; the rest is skipped
# oneDNN is off: its treatment of NaN, infinities and unusual ranks depends on the machine.
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "CUDA_VISIBLE_DEVICES": "",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "OMP_NUM_THREADS": "1",
}
Answers = list[Answer] | str  # str: why there is no reference


def version_of(python: str) -> str:
    """Return the version of tensorflow in an interpreter's environment.

    Raises:
        SystemExit: It cannot import tensorflow.
    """
    command = [python, "-c", "import tensorflow; print(tensorflow.__version__)"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **ENVIRONMENT}
    )
    if done.returncode:
        raise SystemExit(f"{python} has no tensorflow")
    return done.stdout.split()[-1]


def _send(stream: BinaryIO, frames: list[Any]) -> None:
    try:
        for frame in frames:
            write_frame(stream, frame)
    except OSError:  # the process ended; the thread that reads its answers handles that
        pass


def _unpacked(found: Any) -> Answers:
    return found if isinstance(found, str) else [unpack_answer(each) for each in found]


class Reference:
    """A TensorFlow process and its stored answers.

    Guarantees: `answers` always returns; a crash or a timeout costs one restart.
    """

    def __init__(self, python: str, folder: pathlib.Path, only_kept: bool = False) -> None:
        self._python, self._folder, self._only_kept = python, folder, only_kept
        self._process: subprocess.Popen[bytes] | None = None
        self._kept: dict[str, Any] = {}
        self._op = ""
        self._until = 0.0
        self._has_new_answers = False
        # Working directory of the process: random cases may write files with random names.
        self._working_directory = tempfile.TemporaryDirectory()
        self.version = ""

    def open(self, op: str) -> None:
        """Load the stored answers of one op, and store those of the previous one."""
        self.save()
        self._op, self._has_new_answers = op, False
        self._until = time.monotonic() + TIMEOUT_OF_OP
        path = self._path()
        self._kept = pickle.loads(path.read_bytes()) if path.exists() else {}

    def save(self) -> None:
        """Store the answers of the open op."""
        if self._has_new_answers:
            self._folder.mkdir(exist_ok=True)
            fresh = self._path().with_suffix(f".{os.getpid()}")
            fresh.write_bytes(pickle.dumps(self._kept))
            fresh.rename(self._path())  # atomic, so a killed process leaves a complete file
            self._has_new_answers = False

    def close(self) -> None:
        self.save()
        self._stop()
        self._working_directory.cleanup()

    def answers(self, cases: Sequence[Case]) -> list[Answers]:
        """Return for each case one answer a step, or why TensorFlow gave none."""
        unknown = {case.digest: case for case in cases if case.digest not in self._kept}
        while unknown and not self._only_kept and time.monotonic() < self._until:
            self._run_cases(unknown)
        return [_unpacked(self._kept.get(case.digest, "not asked")) for case in cases]

    def _run_cases(self, unknown: dict[str, Case]) -> None:
        """Send all cases, and store the answers up to the first crash or timeout, included."""
        self._has_new_answers = True
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        sender = threading.Thread(
            target=_send, args=(process.stdin, [pack_case(case) for case in unknown.values()])
        )
        sender.start()
        for digest in list(unknown):
            ready, _, _ = select.select([process.stdout], [], [], TIMEOUT)
            answer = read_frame(process.stdout) if ready else None
            self._kept[digest] = answer or (
                "TensorFlow crashed" if ready else f"no answer in {TIMEOUT} s"
            )
            del unknown[digest]
            if answer is None:
                self._stop()
                break
        sender.join()

    def _start(self) -> subprocess.Popen[bytes]:
        script = pathlib.Path(__file__).parent / "tensorflow_process.py"
        self._process = subprocess.Popen(
            [self._python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd=self._working_directory.name,
            env={**os.environ, **ENVIRONMENT},
        )
        assert self._process.stdout is not None
        self.version = read_frame(self._process.stdout) or ""  # type: ignore[arg-type]
        if not self.version:
            self._stop()
            raise SystemExit(f"{self._python} cannot import tensorflow")
        return self._process

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _path(self) -> pathlib.Path:
        return self._folder / f"{self._op}.pickle"
