"""Convert SavedModels to ONNX with tf2onnx; runs in the interpreter that has it.

    PYTHON -m bench.engines.convert_to_onnx FOLDER…

Writes `FOLDER/model.onnx` from `FOLDER/1`, or why that fails to `FOLDER/model.onnx.error`. What is
there already is kept.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

OPSET = "18"  # the newest that tf2onnx 1.17 writes
LIMIT_SECONDS = 600


def convert(folder: pathlib.Path) -> None:
    target, reason = folder / "model.onnx", folder / "model.onnx.error"
    if target.exists() or reason.exists():
        return
    command = [
        *(sys.executable, "-m", "tf2onnx.convert", "--saved-model", str(folder / "1")),
        *("--signature_def", "serving_default", "--opset", OPSET, "--output", str(target)),
    ]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    if done.returncode:
        target.unlink(missing_ok=True)
        last = done.stderr.strip().splitlines()[-1:]
        reason.write_text(f"tf2onnx: {last[0][:300] if last else 'no message'}")


if __name__ == "__main__":
    for each in sys.argv[1:]:
        convert(pathlib.Path(each))
