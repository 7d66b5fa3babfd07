"""Which sizes of inputs are open, and what fits."""

from __future__ import annotations

import pytest

from runtime.clusters.running.input_shapes import Sample, fits, pattern_of


def shown(*samples: Sample, opens_batch: bool = True) -> list[str]:
    pattern = pattern_of(samples, opens_batch=opens_batch)
    return [",".join(str(size) for size in shape) for shape in pattern]


@pytest.mark.parametrize(
    ("samples", "pattern"),
    [
        ([((8, 3),)], ["size_0,3"]),
        ([((8, 3), (8, 5))], ["size_0,3", "size_0,5"]),
        ([((8, 3), (5,))], ["size_0,3", "5"]),
        ([((8, 3), ())], ["size_0,3", ""]),
        ([((8, 3),), ((8, 4),)], ["size_0,size_1"]),
        ([((8, 3), (3,)), ((8, 4), (4,))], ["size_0,size_1", "size_1"]),
        ([((2, 3), (2, 3)), ((4, 3), (1, 3))], ["size_0,3", "size_1,3"]),
        ([()], []),
    ],
)
def test_open_sizes(samples: list[Sample], pattern: list[str]) -> None:
    assert shown(*samples) == pattern
    assert all(fits(pattern_of(samples), sample) for sample in samples)


def test_without_an_open_batch_only_sizes_that_differ_are_open() -> None:
    assert shown(((8, 3),), opens_batch=False) == ["8,3"]
    assert shown(((8, 3),), ((8, 4),), opens_batch=False) == ["8,size_0"]


@pytest.mark.parametrize(
    ("sample", "does_fit"),
    [
        (((1, 3), (1, 5)), True),
        (((0, 3), (0, 5)), True),
        (((1, 3), (2, 5)), False),
        (((1, 4), (1, 5)), False),
        (((3,), (1, 5)), False),
    ],
)
def test_one_symbol_is_one_size(sample: Sample, does_fit: bool) -> None:
    assert fits(pattern_of([((8, 3), (8, 5))]), sample) is does_fit
