"""What a model of OpenVINO must not have; these rules need no engine."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters import openvino_rules
from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import Emission
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.openvino_rules import adapted, refusals
from runtime.clusters.patterns import PATTERNS
from runtime.clusters.patterns.convolution_columns import take_channels_as_columns
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType

FLOAT, DOUBLE, INT32, INT64 = DataType.FLOAT, DataType.DOUBLE, DataType.INT32, DataType.INT64
SHAPE = (symbol("batch"), 3)


def refused(emission: Emission, *outputs: Value) -> list[str]:
    return list(refusals(adapted(EmittedCluster(emission, outputs))).values())


def test_an_image_of_few_channels_is_transposed() -> None:
    assert set(PATTERNS) - set(openvino_rules.PATTERNS) == {take_channels_as_columns}


@pytest.fixture
def emission() -> Emission:
    made = Emission()
    made.node_name = "node"
    return made


def test_float32_is_taken(emission: Emission) -> None:
    x = emission.input(FLOAT, SHAPE)
    assert refused(emission, emission.op("Relu", [x], FLOAT, SHAPE)) == []


@pytest.mark.parametrize("dtype", [DOUBLE, INT32, INT64, DataType.UINT8])
def test_other_types_are_not_computed_with(emission: Emission, dtype: DataType) -> None:
    x = emission.input(dtype, SHAPE)
    assert refused(emission, emission.op("Add", [x, x], dtype, SHAPE)) == [f"Add of {dtype.name}"]


def test_sizes_are_computed_with(emission: Emission) -> None:
    x = emission.input(FLOAT, SHAPE)
    target = emission.sizes((symbol("batch"), 1, 3))
    y = emission.op("Reshape", [x, target], FLOAT, (symbol("batch"), 1, 3))
    assert refused(emission, y) == []


def test_indices_of_a_run_are_not_taken(emission: Emission) -> None:
    table = emission.constant(np.ones((4, 2), np.float32))
    at = emission.input(INT32, (5,))
    assert refused(emission, emission.op("Gather", [table, at], FLOAT, (5, 2), axis=0)) == [
        "Gather of indices that only a run can check, which OpenVINO does not"
    ]


def test_a_pad_value_of_a_run_is_not_taken(emission: Emission) -> None:
    x, value = emission.input(FLOAT, (2, 3)), emission.input(FLOAT, ())
    widths = emission.constant(np.array([0, 1, 0, 1]))
    y = emission.op("Pad", [x, widths, value], FLOAT, (2, 5), mode="constant")
    assert refused(emission, y) == [
        "Pad by a value that only a run knows, which OpenVINO reads once"
    ]


def test_an_infinite_constant_is_not_taken(emission: Emission) -> None:
    x = emission.input(FLOAT, SHAPE)
    infinite = emission.constant(np.float32(-np.inf))
    assert refused(emission, emission.op("Max", [x, infinite], FLOAT, SHAPE)) == [
        "Max of a constant that is not finite"
    ]


def test_a_reshape_to_a_scalar_becomes_a_squeeze(emission: Emission) -> None:
    x = emission.input(FLOAT, (1, 1))
    y = emission.op("Reshape", [x, emission.constant(np.zeros(0, np.int64))], FLOAT, ())
    adapted(EmittedCluster(emission, (y,)))
    (operation,) = emission.operations
    axes = operation.inputs[1]
    assert operation.op_type == "Squeeze"
    assert axes is not None and axes.constant is not None and axes.constant.tolist() == [0, 1]


def test_what_handles_nan_is_left_out(emission: Emission) -> None:
    x = emission.input(FLOAT, SHAPE)
    is_nan = emission.op("IsNaN", [x], DataType.BOOL, SHAPE)
    nan = emission.constant(np.float32(np.nan))
    found = emission.op("Where", [is_nan, nan, x], FLOAT, SHAPE)
    y = emission.op("Relu", [found], FLOAT, SHAPE)
    cluster = adapted(EmittedCluster(emission, (y,)))
    assert refusals(cluster) == {}
    assert emission.operations[-1].inputs == [x]


@pytest.mark.parametrize(("divisor", "checks"), [(2.0, 0), (0.0, 1)])
def test_what_may_overflow_is_checked(emission: Emission, divisor: float, checks: int) -> None:
    x = emission.input(FLOAT, SHAPE)
    y = emission.op("Div", [x, emission.constant(np.float32(divisor))], FLOAT, SHAPE)
    adapted(EmittedCluster(emission, (y,)))
    assert len(emission.checks) == checks
