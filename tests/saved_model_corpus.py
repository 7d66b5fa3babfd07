"""Recorded calls of SavedModels: reading them, running them here, comparing.

`tools/export/corpus.py` writes them; the format is described there.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Mapping

import numpy as np

import protos as pb
from runtime.api import (
    RuntimeSession,
    SavedModelBundle,
    SessionOptions,
    load_saved_model,
    new_session,
)
from tests.signature_tensors import FROZEN_GRAPH, tensor_names

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


@dataclasses.dataclass(frozen=True)
class CorpusModel:
    """A loaded model of the corpus: a SavedModel, or a frozen graph without signatures."""

    session: RuntimeSession
    graph_def: pb.GraphDef
    signatures: Mapping[str, pb.SignatureDef]

    def run(self, call: RecordedCall) -> dict[str, np.ndarray]:
        """The outputs of a recorded call, by key."""
        signature = self.signatures.get(call.signature, pb.SignatureDef())
        inputs, outputs = tensor_names(signature.inputs), tensor_names(signature.outputs)
        feeds = {inputs.get(key, key): value for key, value in call.inputs.items()}
        values = self.session.run(feeds, [outputs.get(key, key) for key in call.outputs])
        return dict(zip(call.outputs, map(np.asarray, values), strict=True))


def load_model(folder: pathlib.Path, options: SessionOptions) -> CorpusModel:
    """A session in which the model's calls can run."""
    frozen = folder / FROZEN_GRAPH
    if not frozen.exists():
        return model_of(load_saved_model(options, None, str(folder), {"serve"}))
    graph_def = pb.GraphDef.FromString(frozen.read_bytes())
    session = new_session(options)
    session.create(graph_def)
    return CorpusModel(session, graph_def, {})


def model_of(bundle: SavedModelBundle) -> CorpusModel:
    """The corpus's view of a loaded SavedModel."""
    return CorpusModel(bundle.session, bundle.meta_graph_def.graph_def, bundle.signatures)


def run_call(bundle: SavedModelBundle, call: RecordedCall) -> dict[str, np.ndarray]:
    """The outputs of the signature, by key."""
    return model_of(bundle).run(call)


def relative_difference(got: np.ndarray, want: np.ndarray) -> float:
    """Largest difference over the largest expected magnitude; infinity for another type or NaN."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return float("inf")
    if want.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, want) else float("inf")
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    difference = np.abs(got.astype(wide) - want.astype(wide))
    largest = np.abs(want.astype(wide)).max(initial=0.0) or 1.0
    worst = float(difference.max(initial=0.0) / largest)
    return float("inf") if np.isnan(worst) else worst  # max() of Python passes over NaN
