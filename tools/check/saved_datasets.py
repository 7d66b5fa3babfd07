"""Check that TensorFlow and Runstep can load the datasets that the other has saved.

    python tools/check/saved_datasets.py        in an environment with TensorFlow

`tf.data.Dataset.save` and `load` make the graphs, and SnapshotDataset, whose files have an older
format, those of 0 shards. One runtime runs the save and the other the load;
the elements read must equal those written. Prints a line for each failure, and exits with 1 if
there is one.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf
from tensorflow.python.data.ops.dataset_ops import _VariantDataset

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
import protos as pb
from runtime.api import SessionOptions, new_session
from runtime.foundation.errors import OpError, OutOfRangeError

Run = Callable[[tf.Graph, list[tf.Operation], list[tf.Tensor]], list[list[np.ndarray]]]
Dataset = Callable[[], tf.data.Dataset]
DATASETS: dict[str, Dataset] = {
    "numbers": lambda: tf.data.Dataset.range(20),
    "nothing": lambda: tf.data.Dataset.range(0),
    "strings": lambda: tf.data.Dataset.from_tensor_slices(["a", "", "c\0d"]),
    "half types": lambda: tf.data.Dataset.range(5).map(
        lambda x: (tf.cast(x, tf.bfloat16), tf.cast(x, tf.float16))
    ),
    "structures": lambda: tf.data.Dataset.range(6).map(
        lambda x: {"a": (tf.fill([x], x), tf.as_string(x)), "b": x > 2, "c": tf.cast(x, tf.uint8)}
    ),
    "large elements": lambda: tf.data.Dataset.range(3).map(lambda x: tf.fill([300, 400], x)),
    "ragged tensors": lambda: tf.data.Dataset.range(4).map(
        lambda x: tf.RaggedTensor.from_row_lengths([x, x + 1], [0, 2])
    ),
    "sparse tensors": lambda: tf.data.Dataset.range(4).map(
        lambda x: tf.sparse.SparseTensor([[0, 1]], tf.expand_dims(x, 0), [2, 3])
    ),
}
COMPRESSIONS = (None, "GZIP", "SNAPPY")
SHARDS = (0, 1, 3)
# TensorFlow ends the process when it writes or reads a snapshot of these with SNAPPY.
EMPTY_TENSORS = ("structures", "ragged tensors")


def run_in_tensorflow(
    graph: tf.Graph, targets: list[tf.Operation], fetches: list[tf.Tensor]
) -> list[list[np.ndarray]]:
    """Run the targets, then fetch until OUT_OF_RANGE; return the values of each step."""
    rows = []
    with tf.compat.v1.Session(graph=graph) as session:
        session.run(targets)
        while fetches:
            try:
                rows.append(session.run(fetches))
            except tf.errors.OutOfRangeError:
                break
    return rows


def run_here(
    graph: tf.Graph, targets: list[tf.Operation], fetches: list[tf.Tensor]
) -> list[list[np.ndarray]]:
    """Run the same steps in a direct session of Runstep."""
    rows = []
    session = new_session(SessionOptions())
    session.create(pb.GraphDef.FromString(graph.as_graph_def().SerializeToString()))
    session.run({}, [], [each.name for each in targets])
    while fetches:
        try:
            rows.append(session.run({}, [each.name for each in fetches]))
        except OutOfRangeError:
            break
    session.close()
    return rows


SIDES: dict[str, Run] = {"TensorFlow": run_in_tensorflow, "Runstep": run_here}


def _pass_over(dataset: tf.data.Dataset) -> tuple[list[tf.Operation], list[tf.Tensor]]:
    iterator = tf.compat.v1.data.make_initializable_iterator(dataset)
    flat = tf.nest.flatten(iterator.get_next(), expand_composites=True)
    return [iterator.initializer], flat


def save(make: Dataset, path: str, compression: str | None, shards: int, run: Run) -> None:
    """Save a dataset with one of SIDES."""
    with tf.Graph().as_default() as graph:
        dataset = make().enumerate()
        if not shards:
            run(graph, *_pass_over(snapshot(dataset, path, compression, "write")))
            return
        shard = None if shards == 1 else (lambda index, _: index % shards)
        saved = dataset.save(path, compression=compression, shard_func=shard)
        if isinstance(saved, tf.data.Dataset):
            run(graph, *_pass_over(saved))
        else:
            run(graph, [saved], [])


def snapshot(
    dataset: tf.data.Dataset, path: str, compression: str | None, mode: str
) -> tf.data.Dataset:
    """Return a SnapshotDataset of `dataset`."""
    variant = tf.raw_ops.SnapshotDataset(
        input_dataset=dataset._variant_tensor,
        path=path,
        compression=compression or "",
        mode=mode,
        snapshot_name="run",
        shard_size_bytes=100,
        **dataset._flat_structure,
    )
    return _VariantDataset(variant, dataset.element_spec)


def load(
    make: Dataset, path: str, compression: str | None, shards: int, run: Run
) -> list[list[np.ndarray]]:
    """Load a dataset with one of SIDES; return its elements in the order of their numbers."""
    with tf.Graph().as_default() as graph:
        if shards:
            spec = make().enumerate().element_spec
            read = tf.data.Dataset.load(path, element_spec=spec, compression=compression)
        else:
            read = snapshot(make().enumerate(), path, compression, "read")
        rows = run(graph, *_pass_over(read))
    return sorted(rows, key=lambda row: int(row[0]))


def expected(make: Dataset) -> list[list[np.ndarray]]:
    """Return the elements that TensorFlow makes without saving."""
    with tf.Graph().as_default() as graph:
        return run_in_tensorflow(graph, *_pass_over(make().enumerate()))


def _plain(value: Any) -> tuple[str, Any]:
    """Return an element's type and values; a string may be bytes or an array of objects."""
    array = np.asarray(value)
    return "string" if array.dtype.kind in "OS" else array.dtype.name, array.tolist()


def is_same(first: list[list[np.ndarray]], second: list[list[np.ndarray]]) -> bool:
    """Return whether two passes over a dataset gave the same elements."""
    return len(first) == len(second) and all(
        _plain(a) == _plain(b)
        for one, other in zip(first, second, strict=True)
        for a, b in zip(one, other, strict=True)
    )


def check(name: str, compression: str | None, shards: int, writer: str, reader: str) -> str:
    """Return what differs or failed, "" if nothing did."""
    make = DATASETS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "saved")
        try:
            save(make, path, compression, shards, SIDES[writer])
            rows = load(make, path, compression, shards, SIDES[reader])
        except (OpError, tf.errors.OpError, ValueError) as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return "" if is_same(rows, expected(make)) else f"read other elements: {rows}"


def main() -> int:
    """Check all combinations; return 1 if one fails."""
    failed = 0
    count = 0
    for name in DATASETS:
        for compression in COMPRESSIONS:
            for shards in SHARDS:
                if not shards and compression == "SNAPPY" and name in EMPTY_TENSORS:
                    continue
                for writer, reader in (("TensorFlow", "Runstep"), ("Runstep", "TensorFlow")):
                    wrong: Any = check(name, compression, shards, writer, reader)
                    count += 1
                    failed += bool(wrong)
                    if wrong:
                        print(
                            f"{name}, {compression}, {shards} shards, {writer} to {reader}: {wrong}"
                        )
    print(f"{count - failed} of {count} saved datasets were read as they were written")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
