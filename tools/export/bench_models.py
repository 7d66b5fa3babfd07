"""Export the models that `python -m bench` measures, with inputs and TensorFlow's answers.

Run in an environment that has tensorflow and keras, from the root of the repository:

    python tools/export/bench_models.py DIR [name …]      # all models, or those named

`DIR/<name>/1` is the SavedModel, as Keras's ExportArchive writes it. `DIR/<name>/inputs.npz` has
eight inputs by the signatures' input names; `DIR/<name>/expected.npz` has what TensorFlow answers,
as `<signature>/<output>`. Strings are arrays of fixed-width bytes. A model whose expected.npz
exists is skipped.
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

import keras
import numpy as np
import tensorflow as tf

from tools.corpus.measured_models import MODELS, Exported
from tools.export.corpus import storable

SEED = 20


def export(exported: Exported, folder: pathlib.Path) -> None:
    """Write the SavedModel, inputs.npz and expected.npz below the folder."""
    archive = keras.export.ExportArchive()
    archive.track(exported.model)
    for name, function in exported.signatures.items():
        archive.add_endpoint(name, function, input_signature=exported.specs)
    archive.write_out(str(folder / "1"), verbose=False)
    loaded = tf.saved_model.load(str(folder / "1"))
    feeds = {name: tf.constant(value) for name, value in exported.inputs.items()}
    expected = {
        f"{name}/{key}": storable(value.numpy())
        for name in exported.signatures
        for key, value in loaded.signatures[name](**feeds).items()
    }
    inputs = {name: storable(value) for name, value in exported.inputs.items()}
    np.savez_compressed(folder / "inputs.npz", **inputs)
    np.savez_compressed(folder / "expected.npz", **expected)


def main(arguments: list[str]) -> None:
    target = pathlib.Path(arguments[0])
    for name in arguments[1:] or MODELS:
        folder = target / name
        if (folder / "expected.npz").exists():
            print(f"{name}: there already")
            continue
        shutil.rmtree(folder, ignore_errors=True)
        keras.backend.clear_session()
        keras.utils.set_random_seed(SEED)
        start = time.perf_counter()
        export(MODELS[name](np.random.default_rng(SEED)), folder)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        print(f"{name}: {size / 1e6:.1f} MB, {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
