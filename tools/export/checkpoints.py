"""Write the tensors of tests/checkpoint_tensors.py to tests/fixtures/checkpoints by TensorFlow.

Run in an environment that has tensorflow, from the root of the repository.
"""

import os
import pathlib
import shutil
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np
import tensorflow as tf

from tests import checkpoint_tensors as given

TARGET = ROOT / "tests" / "fixtures" / "checkpoints"


def save(prefix: str, tensors: list[tuple[str, str, np.ndarray]]) -> None:
    """Save a list of (name, shape_and_slice, value) as a tensor bundle."""
    names, slices, values = zip(*tensors, strict=True)
    values = [tensor(value) for value in values]
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=values)


def main() -> None:
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    save(str(TARGET / "plain"), [(name, "", value) for name, value in given.PLAIN.items()])
    parts = [("table", spec, value) for spec, value in given.PARTS]
    parts += [("long", spec, value) for spec, value in given.LONG_PARTS]
    save(str(TARGET / "partitioned"), parts)
    with tempfile.TemporaryDirectory() as folder:
        first, second = given.HALVES
        save(f"{folder}/part-0", [("table", *first)])
        save(f"{folder}/part-1", [("table", *second), ("extra", "", given.EXTRA)])
        tf.raw_ops.MergeV2Checkpoints(
            checkpoint_prefixes=[f"{folder}/part-0", f"{folder}/part-1"],
            destination_prefix=str(TARGET / "sharded"),
        )
    save(str(TARGET / "lonely_slice"), [("table", *given.HALVES[0])])
    names, slices, values = zip(*given.V1, strict=True)
    tf.raw_ops.SaveSlices(
        filename=str(TARGET / "v1"),
        tensor_names=names,
        shapes_and_slices=slices,
        data=[tensor(value) for value in values],
    )


def tensor(value: np.ndarray) -> tf.Tensor:
    """Return a constant; the dtype is given because empty object arrays would become float."""
    return tf.constant(value, tf.string if value.dtype == object else value.dtype)


if __name__ == "__main__":
    main()
