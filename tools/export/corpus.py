"""Export the corpus of models, each with the outputs that TensorFlow gives to its calls.

Run in an environment that has tensorflow and keras, from the root of the repository:

    python tools/export/corpus.py DIR [name …]            # all models, or those named
    python tools/export/corpus.py --fixtures [name …]     # the small ones, into tests/fixtures

A model whose io.npz exists is skipped. `<model>/io.npz` holds the calls in order:
`<call>/<signature>/inputs/<key>` and `<call>/<signature>/outputs/<key>`. They ran in one session,
so a stateful model's later calls see the effects of the earlier ones. Strings are arrays of bytes;
reading the file needs no pickle.
"""

import os
import pathlib
import shutil
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np
import tensorflow as tf

from tests.signature_tensors import FROZEN_GRAPH, tensor_names
from tools.corpus import (
    applications,
    graph_models,
    keras_models,
    sequence_models,
    task_models,
)
from tools.corpus.call import Call

FIXTURES = ROOT / "tests" / "fixtures" / "saved_models"
SMALL = {
    **graph_models.SMALL,
    **keras_models.SMALL,
    **sequence_models.SMALL,
    **task_models.SMALL,
}
ALL = {
    **SMALL,
    **keras_models.LARGE,
    **applications.LARGE,
    **sequence_models.LARGE,
    **task_models.FROZEN,
}
# Removed from the fixtures to keep them small: the loader does not read these.
NOT_LOADED = ("debug", "fingerprint.pb", "assets.extra")


def record(folder: pathlib.Path, calls: list[Call]) -> None:
    """Run the calls in one session of the exported model, and write io.npz."""
    arrays: dict[str, np.ndarray] = {}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        signatures = import_model(session, folder)
        for index, call in enumerate(calls):
            inputs, outputs = signatures.get(call.signature, ({}, {}))
            feeds = {inputs.get(key, key): value for key, value in call.inputs.items()}
            fetches = outputs or {key: key for key in call.outputs}
            outputs = session.run(fetches, feeds)
            for kind, values in (("inputs", call.inputs), ("outputs", outputs)):
                for key, value in values.items():
                    arrays[f"{index}/{call.signature}/{kind}/{key}"] = storable(value)
    with (folder / "io.npz").open("wb") as file:
        np.savez_compressed(file, **arrays)


def import_model(
    session: tf.compat.v1.Session, folder: pathlib.Path
) -> dict[str, tuple[dict[str, str], dict[str, str]]]:
    """Load a SavedModel or a frozen graph into the session.

    Returns:
        {signature: ({input key: tensor name}, {output key: tensor name})}; {} for a frozen graph.
    """
    frozen = folder / FROZEN_GRAPH
    if frozen.exists():
        graph_def = tf.compat.v1.GraphDef.FromString(frozen.read_bytes())
        tf.graph_util.import_graph_def(graph_def, name="")
        return {}
    meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], str(folder))
    return {
        key: (tensor_names(signature.inputs), tensor_names(signature.outputs))
        for key, signature in meta_graph.signature_def.items()
    }


def storable(value: object) -> np.ndarray:
    """Return the value as an array, strings as fixed-width bytes.

    Raises:
        ValueError: A string ends in NUL, which fixed-width bytes cannot represent.
    """
    array = np.asarray(value)
    if array.dtype == object:
        if any(item.endswith(b"\0") for item in array.ravel()):
            raise ValueError("a string that ends in NUL can't be recorded")
        array = array.astype("S")
    return array


def main(arguments: list[str]) -> None:
    fixtures = arguments[0] == "--fixtures"
    target = FIXTURES if fixtures else pathlib.Path(arguments[0])
    models = SMALL if fixtures else ALL
    for name in arguments[1:] or models:
        folder = target / name
        if (folder / "io.npz").exists():
            print(f"{name}: there already")
            continue
        shutil.rmtree(folder, ignore_errors=True)
        tf.keras.backend.clear_session()
        tf.keras.utils.set_random_seed(1)
        start = time.perf_counter()
        record(folder, models[name](folder))
        for unused in NOT_LOADED if fixtures else ():
            path = folder / unused
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"{name}: {size / 1000:.0f} kB, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
