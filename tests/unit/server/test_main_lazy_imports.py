"""What is not needed to answer the first request is imported after the socket answers."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
LATER = ("grpc", "onnxruntime", "PIL", "httpx")


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("server.main", (*LATER, "numpy", "fastapi", "protos")),
        ("server.process", (*LATER, "fastapi", "server.console", "runtime.clusters.emit_cluster")),
    ],
)
def test_heavy_modules_are_left_for_later(module, absent):
    script = f"import sys, {module}; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
