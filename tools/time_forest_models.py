"""Time the exported decision forests beside ydf's own predictor, and compare their predictions.

    python tools/time_forest_models.py [--turns 8]

Runs where Runstep and ydf are installed. For each folder of tests/extras/forests/models: the
largest difference of the predictions from those of TensorFlow that were recorded, and microseconds
of a step in the caller's thread and of `ydf.Model.predict` with the same columns, for 1 and for
1,000 rows: the least of so many turns. Serialized examples are parsed by Runstep alone; ydf gets
their columns.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import sys
import timeit
from collections.abc import Callable
from typing import Any

import numpy as np
import ydf

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

import protos as pb
from runtime.api import SessionOptions, load_saved_model

MODELS = ROOT / "tests/extras/forests/models"
ROWS, SECONDS = (1, 1000), 0.2
Arrays = dict[str, Any]


def stored(name: str) -> tuple[Arrays, Arrays]:
    """Return the recorded inputs and TensorFlow's outputs."""
    with np.load(MODELS / name / "answers.npz") as arrays:
        found = {
            key: array.astype(object) if array.dtype.kind == "S" else array
            for key, array in arrays.items()
        }
    return tuple(
        {key.partition(".")[2]: found[key] for key in found if key.startswith(kind)}
        for kind in ("in.", "out.")
    )  # type: ignore[return-value] # of two


def repeated(inputs: Arrays, rows: int) -> Arrays:
    """Return inputs of so many rows, the recorded ones in turn."""
    if "features_1" not in inputs:
        return {key: np.resize(values, rows) for key, values in inputs.items()}
    sets = np.split(inputs["features"], inputs["features_1"][1:-1])
    chosen = [sets[row % len(sets)] for row in range(rows)]
    splits = np.cumsum([0, *map(len, chosen)])
    plain = {key: np.resize(inputs[key], rows) for key in inputs if "features" not in key}
    values = np.array([*np.concatenate(chosen), None], object)[:-1]
    return {**plain, "features": values, "features_1": splits}


def columns(inputs: Arrays) -> Arrays:
    """Return the columns that ydf takes."""
    if "inputs" in inputs:
        return of_examples(inputs["inputs"])
    found = {key: texts(values) for key, values in inputs.items() if "features" not in key}
    if "features_1" in inputs:
        parts = np.split(texts(inputs["features"]), inputs["features_1"][1:-1])
        found["words"] = [part.tolist() for part in parts]
    return found


def texts(values: np.ndarray) -> np.ndarray:
    if values.dtype != object:
        return values
    return np.array([each.decode() for each in values.tolist()])


def of_examples(examples: np.ndarray) -> Arrays:
    parsed = [pb.Example.FromString(each).features.feature for each in examples]
    names = sorted({name for each in parsed for name in each})
    found: Arrays = {}
    for name in names:
        is_text = any(each[name].bytes_list.value for each in parsed if name in each)
        found[name] = np.array([value_of(each, name, is_text) for each in parsed])
    return found


def value_of(features: Any, name: str, is_text: bool) -> str | float:
    if name not in features:
        return "" if is_text else float("nan")
    feature = features[name]
    return feature.bytes_list.value[0].decode() if is_text else feature.float_list.value[0]


def microseconds(call: Callable[[], object]) -> float:
    timer = timeit.Timer(call)
    count, taken = timer.autorange()
    count = max(1, int(count * SECONDS / taken))
    return 1e6 * timer.timeit(count) / count


def forest(name: str) -> ydf.GenericModel:
    assets = MODELS / name / "1" / "assets"
    prefix = next(assets.glob("*done")).name.removesuffix("done")
    return ydf.load_model(str(assets), advanced_options=ydf.ModelIOOptions(file_prefix=prefix))


def row_of(name: str, turns: int) -> list[str]:
    """Return the largest difference of a model, and its times."""
    options = SessionOptions(config=pb.ConfigProto(inter_op_parallelism_threads=-1))
    bundle = load_saved_model(options, None, str(MODELS / name / "1"), {"serve"})
    signature = bundle.signatures["serving_default"]
    fetches = [each.name for each in signature.outputs.values()]
    inputs, outputs = stored(name)

    def step(given: Arrays) -> list[Any]:
        feeds = {signature.inputs[key].name: value for key, value in given.items()}
        return bundle.session.run(feeds, fetches)

    differences = [
        float(np.abs(got - outputs[key]).max(initial=0))
        for key, got in zip(signature.outputs, step(inputs), strict=True)
        if got.dtype != object
    ]
    model, times = forest(name), []
    for rows in ROWS:
        given = repeated(inputs, rows)
        predict = functools.partial(model.predict, columns(given))
        calls = (predict, functools.partial(predict, num_threads=1))
        times.append(min(microseconds(functools.partial(step, given)) for _ in range(turns)))
        times.append(min(microseconds(call) for _ in range(turns) for call in calls))
    bundle.session.close()
    return [f"{max(differences):g}", *(f"{each:.0f}" for each in times)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=8)
    turns = parser.parse_args().turns
    print(
        "| model | difference | 1 row | ydf | 1,000 rows | ydf |",
        "| --- | --- | --- | --- | --- | --- |",
        sep="\n",
    )
    for name in sorted(path.name for path in MODELS.iterdir()):
        print("|", " | ".join([name, *row_of(name, turns)]), "|", flush=True)


if __name__ == "__main__":
    main()
