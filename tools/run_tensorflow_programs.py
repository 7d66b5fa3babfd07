"""Run the programs of tools/tensorflow_programs, which use only TensorFlow, on Runstep's gRPC port.

    python tools/run_tensorflow_programs.py --tensorflow PYTHON [--target grpc://host:port] [NAME …]

PYTHON is an interpreter with TensorFlow. Without a target, a new server is started whose sessions
may write to a temporary folder; otherwise the programs run on the given master, for instance a
`tf.distribute.Server`. The arguments of each program are the target and the folder; it asserts its
results.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
PROGRAMS = ROOT / "tools" / "tensorflow_programs"
PROGRAM_SECONDS = 120


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tensorflow", required=True, help="an interpreter that has TensorFlow")
    parser.add_argument("--target", help="grpc://host:port of another master")
    parser.add_argument("names", nargs="*", help="programs to run; all if none is named")
    options = parser.parse_args()
    programs = sorted(PROGRAMS.glob("*.py"))
    if options.names:
        programs = [path for path in programs if path.stem in options.names]
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        other = contextlib.nullcontext(options.target)
        with other if options.target else fresh_server(pathlib.Path(folder)) as target:
            print("| program | outcome | seconds |\n| --- | --- | --- |")
            for path in programs:
                started = time.monotonic()
                passed, last_line = run(options.tensorflow, path, target, folder)
                failed += not passed
                seconds = time.monotonic() - started
                outcome = last_line if passed else f"FAILED: {last_line}"
                print(f"| {path.stem} | {outcome} | {seconds:.1f} |", flush=True)
    return 1 if failed else 0


def run(python: str, program: pathlib.Path, target: str, folder: str) -> tuple[bool, str]:
    """Run a program; return whether it succeeded, and its last line of output."""
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            [python, str(program), target, folder],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PROGRAM_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False, f"no end after {PROGRAM_SECONDS} s"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines() or [""]
    return done.returncode == 0, lines[-1]


@contextlib.contextmanager
def fresh_server(folder: pathlib.Path) -> Iterator[str]:
    """Run `runstep serve` without models; yield its gRPC target."""
    config = folder / "server.yaml"
    config.write_text(json.dumps({"models": [], "sessions": {"allowed_paths": [str(folder)]}}))
    command = [sys.executable, "-m", "server.main", "serve", f"--config={config}"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "RUNSTEP_REST__PORT": "free", "RUNSTEP_GRPC__PORT": "free"},
    ) as process:
        assert process.stderr is not None
        try:
            listening = (re.search(r"gRPC listens on port (\d+)", line) for line in process.stderr)
            yield f"grpc://127.0.0.1:{next(found for found in listening if found)[1]}"
        finally:
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
