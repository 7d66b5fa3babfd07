"""Convolutions that are refused, and dimension numbers that are damaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import protos as pb
from runtime.api import InvalidArgumentError
from tests.unit.runtime.kernels.xla.xla_steps import run, vector

IMAGE, KERNEL = np.ones((2, 7, 6, 4), np.float32), np.ones((3, 2, 4, 6), np.float32)
NHWC = pb.ConvolutionDimensionNumbers(
    input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=[1, 2],
    kernel_output_feature_dimension=3, kernel_input_feature_dimension=2,
    kernel_spatial_dimensions=[0, 1], output_batch_dimension=0, output_feature_dimension=3,
    output_spatial_dimensions=[1, 2],
).SerializeToString()  # fmt: skip
LINE = pb.ConvolutionDimensionNumbers(input_spatial_dimensions=[1]).SerializeToString()


def conv(
    kernel: np.ndarray = KERNEL, numbers: bytes = NHWC, groups: int = 1, strides: Any = (1, 1),
    padding: Any = ((0, 0), (0, 0)),
) -> Any:  # fmt: skip
    return run(
        "XlaConv", IMAGE, kernel, vector(*strides), np.array(padding, np.int32), vector(1, 1),
        vector(1, 1), np.int32(groups), dimension_numbers=numbers, precision_config=b"",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kernel": KERNEL[:, :, :3]}, "4 channels of 2 rows do not fit a kernel of 3 channels"),
        ({"groups": 3}, "in 3 feature groups"),
        ({"groups": 0}, "feature_group_count must be a positive scalar, got 0"),
        ({"strides": (0, 1)}, r"window_strides must be at least 1, got \[0, 1\]"),
        ({"strides": (1,)}, "window_strides must be a vector of size 2"),
        ({"padding": ((-4, -4), (0, 0))}, "negative size for dimension 0"),
        ({"numbers": b"\xff\xff"}, "dimension_numbers is no ConvolutionDimensionNumbers"),
        ({"numbers": LINE}, "dimension_numbers has 3 dimensions for tensors of rank 4"),
        ({"kernel": np.ones((3, 4), np.float32)}, "must have the same rank"),
    ],
)
def test_convolutions_that_do_not_fit_are_refused(changes: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        conv(**changes)


def test_a_convolution_of_ones_counts_elements() -> None:
    assert np.unique(conv()).tolist() == [3 * 2 * 4]
