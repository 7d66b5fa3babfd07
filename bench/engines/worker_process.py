"""The parent's side of a worker."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any

ROOT = pathlib.Path(__file__).parents[2]
END_SECONDS = 20
# The engines' own threads are set through their options; these are BLAS's, for the reference GEMM
# and for numpy beside an engine. Runstep sets its own.
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")


class WorkerProcess:
    """A child with one model in one engine. A context manager, which ends the child.

    Raises:
        RuntimeError: The child ended; before its first answer only unless `may_fail`, which makes
            the engine unavailable for the model.
    """

    def __init__(
        self, python: str, engine: str, folder: pathlib.Path, threads: int, may_fail: bool = False
    ) -> None:
        environment = {
            **os.environ,
            **dict.fromkeys(BLAS_VARIABLES, str(threads if engine == "gemm" else 1)),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
        }
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in __exit__
        self._process = subprocess.Popen(
            [python, "-m", "bench.engines.worker", engine, str(folder), str(threads)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.engine = engine
        try:
            self.start = self._answer()  # see worker.py; waits until the model has run once
        except RuntimeError as error:
            if not may_fail:
                self.end()
                raise
            self.start = {"unavailable": str(error).strip().splitlines()[-1]}

    @property
    def unavailable(self) -> str | None:
        """Why the engine doesn't run this model, or None if it does."""
        return self.start.get("unavailable")

    def ask(self, **command: Any) -> dict[str, Any]:
        """Send a command of worker.py and return its answer."""
        assert self._process.stdin is not None
        print(json.dumps(command), file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._errors.seek(0)
            raise RuntimeError(f"{self.engine} ended: {self._errors.read()[-2000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the child."""
        self._process.kill()
        self._process.wait(END_SECONDS)
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()
