"""Load exported SavedModels in TensorFlow and compare its outputs with the recorded ones.

    python -m server.main export tests/fixtures/saved_models/NAME OUT/NAME [--freeze]
    python tools/check/export.py OUT [--recorded tests/fixtures/saved_models]

Requires an environment with TensorFlow. Each folder of OUT is loaded by TensorFlow 1's loader, and
its recorded calls run in one session. A folder `NAME_frozen` uses the recorded calls of NAME.
"""

import argparse
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.signature_tensors import tensor_names

tf.disable_eager_execution()
TOLERANCE = 1e-4  # relative to the largest expected magnitude


def read_calls(path: pathlib.Path) -> list[tuple[str, dict, dict]]:
    """Return (signature, inputs, outputs) of every recorded call, in order."""
    calls: dict[tuple[int, str], tuple[str, dict, dict]] = {}
    with np.load(path) as arrays:
        for name in arrays.files:
            index, signature, kind, key = name.split("/", 3)
            call = calls.setdefault((int(index), signature), (signature, {}, {}))
            call[1 if kind == "inputs" else 2][key] = arrays[name]
    return [calls[key] for key in sorted(calls)]


def difference(got: np.ndarray, expected: np.ndarray) -> float:
    if expected.dtype.kind in "SU" or got.dtype == object:
        return float(got.astype(bytes).tolist() != expected.astype(bytes).tolist())
    if not expected.size:
        return float(got.shape != expected.shape)
    largest = float(np.max(np.abs(expected.astype(np.float64)))) or 1.0
    return float(np.max(np.abs(got.astype(np.float64) - expected.astype(np.float64)))) / largest


def check(folder: pathlib.Path, recorded: pathlib.Path) -> float:
    worst = 0.0
    with tf.Session(graph=tf.Graph()) as session:
        meta_graph = tf.saved_model.load(session, ["serve"], str(folder))
        for name, inputs, outputs in read_calls(recorded / "io.npz"):
            signature = meta_graph.signature_def[name]
            given, fetches = tensor_names(signature.inputs), tensor_names(signature.outputs)
            feeds = {
                given[key]: value.astype(object) if value.dtype.kind in "SU" else value
                for key, value in inputs.items()
            }
            keys = sorted(outputs)
            values = session.run([fetches[key] for key in keys], feeds)
            for key, value in zip(keys, values, strict=True):
                worst = max(worst, difference(np.asarray(value), outputs[key]))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exported", type=pathlib.Path)
    parser.add_argument(
        "--recorded", type=pathlib.Path, default=pathlib.Path("tests/fixtures/saved_models")
    )
    options = parser.parse_args()
    failed = 0
    for folder in sorted(options.exported.iterdir()):
        worst = check(folder, options.recorded / folder.name.removesuffix("_frozen"))
        failed += worst > TOLERANCE
        print(f"{folder.name:32} {worst:.1e} {'ok' if worst <= TOLERANCE else 'DIFFERS'}")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
