"""Convert SavedModels to ONNX with tf2onnx; runs in the interpreter that has it.

    PYTHON -m bench.engines.convert_to_onnx FOLDER…

Writes `FOLDER/model.onnx` from `FOLDER/1`, or why that fails to `FOLDER/model.onnx.error`. What is
there already is kept. tf2onnx leaves Erfc, which Keras's GELU has, as a node that ONNX does not
know; it is written as 1 − Erf here.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import numpy as np
import onnx  # the interpreter that has tf2onnx has it

OPSET = "18"  # the newest that tf2onnx 1.17 writes
LIMIT_SECONDS = 600
ONE = "one/of/erfc"  # the name of a constant


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
        return
    model = onnx.load(target)
    if replace_erfc(model.graph):
        onnx.save(model, target)


def replace_erfc(graph: onnx.GraphProto) -> int:
    """Write each Erfc of float32 as 1 − Erf, at its place; return how many there were."""
    nodes, count = [], 0
    for node in graph.node:
        if node.op_type != "Erfc":
            nodes.append(node)
            continue
        count += 1
        erf = f"{node.output[0]}/erf"
        nodes.append(onnx.helper.make_node("Erf", node.input, [erf], f"{node.name}/erf"))
        nodes.append(onnx.helper.make_node("Sub", [ONE, erf], node.output, node.name))
    if count:
        graph.initializer.append(onnx.numpy_helper.from_array(np.float32(1), ONE))
        del graph.node[:]
        graph.node.extend(nodes)
    return count


if __name__ == "__main__":
    for each in sys.argv[1:]:
        convert(pathlib.Path(each))
