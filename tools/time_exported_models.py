"""Time the exported models of an extra, in Runstep, in TensorFlow or (those of JAX) in JAX.

    python tools/time_exported_models.py FOLDER [--engine tensorflow|jax] [--rows 1 32]

FOLDER is such as tests/extras/jax/models; each folder NAME in it has a SavedModel in NAME/1 and
recorded inputs in NAME/answers.npz (`in.INPUT`), or, as those of tests/extras/text/models,
NAME/saved_model.pb.gz and NAME/answers.json.gz (`words`).
Prints, for each model, microseconds of a call with so many rows, which are the recorded ones in
turn: the least of seven turns. Run it in both environments in turn, on a quiet machine.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import pathlib
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
TURNS, SECONDS = 7, 0.2
Inputs = dict[str, np.ndarray]


def inputs_of(folder: pathlib.Path, rows: int) -> Inputs:
    """Return the recorded inputs, repeated or cut to `rows` rows."""
    if (folder / "answers.json.gz").exists():
        words = json.loads(gzip.decompress((folder / "answers.json.gz").read_bytes()))["words"]
        texts = [each.encode("latin-1") for each in words["data"]]
        return {"words": np.array([texts[row % len(texts)] for row in range(rows)], object)}
    with np.load(folder / "answers.npz", allow_pickle=False) as arrays:
        found = {
            key.removeprefix("in."): arrays[key] for key in arrays.files if key.startswith("in.")
        }
    return {key: value[np.arange(rows) % len(value)] for key, value in found.items()}


@contextlib.contextmanager
def saved_model(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """Give the folder of the SavedModel, unpacked if it is recorded as one file."""
    packed = folder / "saved_model.pb.gz"
    if not packed.exists():
        yield folder / "1"
        return
    with tempfile.TemporaryDirectory() as name:
        unpacked = pathlib.Path(name)
        (unpacked / "saved_model.pb").write_bytes(gzip.decompress(packed.read_bytes()))
        yield unpacked


def runstep_call(folder: pathlib.Path, inputs: Inputs) -> Callable[[], Any]:
    import protos as pb
    from runtime.api import SessionOptions, load_saved_model

    options = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
    bundle = load_saved_model(options, None, str(folder), {"serve"})
    signature = bundle.signatures["serving_default"]
    feeds = {
        signature.inputs[key].name: each.astype(object) if each.dtype.kind == "S" else each
        for key, each in inputs.items()
    }
    fetches = [each.name for each in signature.outputs.values()]
    return lambda: bundle.session.run(feeds, fetches)


def tensorflow_call(folder: pathlib.Path, inputs: Inputs) -> Callable[[], Any]:
    import tensorflow as tf

    with contextlib.suppress(ImportError):
        import tensorflow_text  # noqa: F401 # registers the ops
    if not (folder / "variables").exists():  # without one TensorFlow does not load it
        tf.train.Checkpoint().write(str(folder / "variables" / "variables"))
    loaded = tf.saved_model.load(str(folder))
    given = {key: tf.constant(value) for key, value in inputs.items()}
    function = loaded.signatures["serving_default"]

    def call() -> list[Any]:
        return [each.numpy() for each in function(**given).values()]

    call.loaded = loaded  # type: ignore[attr-defined] # it must live as long as the function
    return call


def jax_call(folder: pathlib.Path, inputs: Inputs) -> Callable[[], Any]:
    import jax

    from tools.export.jax_models import EXPORTS

    exported = EXPORTS[folder.parent.name]()
    function = jax.jit(exported.in_jax)
    parameters = jax.device_put(exported.parameters)
    return lambda: [np.asarray(each) for each in function(parameters, inputs).values()]


def microseconds(call: Callable[[], Any]) -> float:
    for _ in range(3):
        call()
    once = min(timeit.repeat(call, number=1, repeat=3))
    number = max(int(SECONDS / max(once, 1e-6)), 1)
    return min(timeit.repeat(call, number=number, repeat=TURNS)) / number * 1e6


ENGINES = {"runstep": runstep_call, "tensorflow": tensorflow_call, "jax": jax_call}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--engine", choices=tuple(ENGINES), default="runstep")
    parser.add_argument("--names", nargs="*", help="models; all without it")
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 32])
    options = parser.parse_args()
    make = ENGINES[options.engine]
    names = options.names or [path.name for path in options.folder.iterdir() if path.is_dir()]
    for folder in map(options.folder.joinpath, sorted(names)):
        with saved_model(folder) as model:
            times = [microseconds(make(model, inputs_of(folder, rows))) for rows in options.rows]
        print(folder.name, *(f"{each:.0f}" for each in times), flush=True)


if __name__ == "__main__":
    main()
