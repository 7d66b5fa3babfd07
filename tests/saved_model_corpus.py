"""Recorded calls of SavedModels: reading them, running them here, comparing.

`tools/export_corpus.py` writes them; the format is described there.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping

import numpy as np

from runtime.api import SavedModelBundle

FIXTURES = pathlib.Path(__file__).parent / "fixtures" / "saved_models"


@dataclasses.dataclass(frozen=True)
class RecordedCall:
    """One call of a signature with TensorFlow's outputs; strings are object arrays of bytes."""

    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


def fixture_names() -> list[str]:
    """The models that are kept in the repository."""
    return sorted(path.parent.name for path in FIXTURES.glob("*/io.npz"))


def read_calls(folder: pathlib.Path) -> list[RecordedCall]:
    """The recorded calls of a model, in the order in which they ran in one session."""
    calls: dict[tuple[int, str], RecordedCall] = {}
    with np.load(folder / "io.npz") as arrays:
        for name in arrays.files:
            index, signature, kind, key = name.split("/", 3)
            call = calls.setdefault((int(index), signature), RecordedCall(signature, {}, {}))
            getattr(call, kind)[key] = _as_tensor(arrays[name])
    return [calls[key] for key in sorted(calls)]


def _as_tensor(array: np.ndarray) -> np.ndarray:
    return array.astype(object) if array.dtype.kind == "S" else array


def run_call(bundle: SavedModelBundle, call: RecordedCall) -> dict[str, np.ndarray]:
    """The outputs of the signature, by key."""
    signature = bundle.signatures[call.signature]
    feeds = {signature.inputs[key].name: value for key, value in call.inputs.items()}
    keys = list(call.outputs)
    values = bundle.session.run(feeds, [signature.outputs[key].name for key in keys])
    return dict(zip(keys, map(np.asarray, values), strict=True))


def relative_difference(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference over the largest expected magnitude; infinity when types differ."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return float("inf")
    if want.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, want) else float("inf")
    difference = np.abs(got.astype(np.float64) - want.astype(np.float64))
    largest = np.abs(want.astype(np.float64)).max(initial=0.0) or 1.0
    return float(difference.max(initial=0.0) / largest)
