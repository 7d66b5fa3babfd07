"""What recognition and the engine's optimiser make of exported models and of small networks.

If these counts fall after a change of an exporter or of the engine, steps are slower without any
error.
"""

from __future__ import annotations

import collections
import pathlib

import numpy as np
import onnxruntime
import pytest

import protos as pb
from runtime.clusters.model_proto import SerializedModel, serialize
from runtime.clusters.patterns import PATTERNS
from tests.conformance.case import Graph
from tests.saved_model_corpus import FIXTURES, read_calls
from tests.unit.runtime.clusters.emitted import Emitted, emitted
from tests.unit.runtime.clusters.exported import exported


def kinds_in_engine(model: SerializedModel, folder: pathlib.Path) -> dict[str, int]:
    """Return how many operations of each kind run, as `domain:type`, after optimisation."""
    path = folder / "optimised.onnx"
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.log_severity_level = 4
    arrays = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in model.arrays.values()]
    if arrays:
        options.add_external_initializers(list(model.arrays), arrays)
    onnxruntime.InferenceSession(model.message, options, providers=["CPUExecutionProvider"])
    graph = pb.onnx.ModelProto.FromString(path.read_bytes()).graph
    return collections.Counter(f"{node.domain}:{node.op_type}" for node in graph.node)


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def convolutions() -> Emitted:
    """A convolution with normalization and activation, a maximum, one with bias and addition."""
    graph = Graph()
    x, f, g = (graph.placeholder("float32", name) for name in "xfg")
    step = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    made = graph.add("Conv2D", x, f, **step)[0]
    vectors = [abs(values(16)) + 0.5 for _ in range(4)]
    normal = graph.add("FusedBatchNormV3", made, *vectors, is_training=False)[0]
    active = graph.add("Relu", normal)[0]
    sizes = {"ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"}
    small = graph.add("MaxPool", active, **sizes)[0]
    second = graph.add("Conv2D", small, g, **step)[0]
    total = graph.add("AddV2", second, small)[0]
    graph.add("Relu", total, name="y")
    sources = {"f:0": values(3, 3, 3, 16), "g:0": values(3, 3, 16, 16)}
    return emitted(graph, {"x:0": values(2, 8, 8, 3)}, ["y:0"], sources=sources, patterns=PATTERNS)


def test_convolutions_have_normalizations_and_activations_inside(tmp_path: pathlib.Path) -> None:
    made = convolutions()
    made.check()
    kinds = kinds_in_engine(serialize(made.cluster, is_baked=True), tmp_path)
    nchwc = "com.microsoft.nchwc"
    assert kinds[f"{nchwc}:Conv"] == 2
    assert kinds[f"{nchwc}:MaxPool"] == 1
    assert kinds[":Transpose"] + kinds[f"{nchwc}:ReorderOutput"] <= 3
    assert not {":Conv", ":BatchNormalization", ":Relu", ":Add", ":Mul"} & kinds.keys()


def test_derived_weights_leave_no_normalization(tmp_path: pathlib.Path) -> None:
    kinds = kinds_in_engine(serialize(convolutions().cluster, is_baked=False), tmp_path)
    assert not {":BatchNormalization", ":Mul"} & kinds.keys()
    assert kinds[":Add"] == 1  # that of the earlier result


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("transformer_small", {"LayerNormalization": 3, "Gelu": 1, "Gemm": 7, "MatMul": 2}),
        ("cnn_small", {"Conv": 5, "ConvTranspose": 1, "Gelu": 1, "Gemm": 1, "MaxPool": 1}),
        ("mlp_small", {"Gemm": 2}),
    ],
)
def test_exported_models(name: str, counts: dict[str, int]) -> None:
    call = read_calls(FIXTURES / name)[0]
    made = exported(FIXTURES / name, call.inputs, call.signature)
    kinds = collections.Counter(made.kinds())
    assert {kind: kinds[kind] for kind in counts} == counts
    assert not {"BatchNormalization", "Erf", "Sqrt"} & kinds.keys()
    made.check()
    for got, want in zip(
        made.run(), (call.outputs[key] for key in sorted(call.outputs)), strict=True
    ):
        np.testing.assert_allclose(got, want, atol=1e-5 * float(np.abs(want).max()))
