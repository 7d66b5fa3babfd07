"""Sizes that a model must not have: none of an input may be 0."""

from __future__ import annotations

import numpy as np
import pytest

from runtime.clusters.backend import CompiledModel, UncheckedRunError
from runtime.clusters.dimensions import symbol
from runtime.clusters.emission import DeclinedError, Emission
from runtime.clusters.emit_cluster import EmittedCluster
from runtime.clusters.model_proto import serialize
from runtime.framework.dtypes import DataType

B = symbol("b")


def test_a_run_with_an_empty_input_is_refused() -> None:
    emission = Emission()
    x = emission.input(DataType.FLOAT, (B, 2))
    emission.require_elements(B, 2)
    y = emission.op("Relu", [x], DataType.FLOAT, (B, 2))
    model = CompiledModel(serialize(EmittedCluster(emission, (y,)), True), 1)
    with pytest.raises(UncheckedRunError, match="an input is empty"):
        model.run([np.zeros((0, 2), np.float32)])
    np.testing.assert_array_equal(model.run([np.ones((3, 2), np.float32)])[0], np.ones((3, 2)))


def test_a_size_that_is_always_0_is_declined() -> None:
    with pytest.raises(DeclinedError, match="empty"):
        Emission().require_elements(B, 0)


def test_fixed_sizes_require_nothing_of_a_run() -> None:
    emission = Emission()
    emission.require_elements(3, 2)
    assert not emission.refuses_empty
