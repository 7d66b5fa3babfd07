"""A client is light: it loads nothing of the runtime but its error classes."""

from __future__ import annotations

import subprocess
import sys


def test_clients_load_neither_runtime_nor_server() -> None:
    script = "import runstep, sys; runstep.Client, runstep.AsyncClient; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert {name for name in loaded if name.split(".")[0] in ("runtime", "server", "protos")} == {
        "runtime", "runtime.errors", "runtime.foundation", "runtime.foundation.errors",
    }  # fmt: skip
    assert not {"google.protobuf", "grpc", "fastapi", "onnxruntime", "ml_dtypes"} & loaded


def test_an_unknown_name_is_an_attribute_error() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from runstep import Nothing"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "cannot import name 'Nothing' from 'runstep'" in done.stderr
