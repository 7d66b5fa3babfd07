"""Shapes of a cluster's inputs: which sizes a compiled form leaves open, and whether it fits a run.

A *sample* is the shapes of all inputs in one run. A *pattern* is the shapes for which a model is
compiled. Open are the batch (axis 0 of the input with the most axes, and of the inputs that have
the same size there) and every other size that differed between samples. Open sizes that were equal
in every sample are one symbol, so that the emitters may combine them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from runtime.clusters.dimensions import Dimension, Shape, SymbolicSize, symbol

Sample: TypeAlias = tuple[tuple[int, ...], ...]
Pattern: TypeAlias = tuple[Shape, ...]


def pattern_of(samples: Sequence[Sample], *, opens_batch: bool = True) -> Pattern:
    """Return the pattern that fits all samples; their inputs must have equal ranks.

    If `opens_batch` is false, only sizes that differ are open.
    """
    names: dict[tuple[int, ...], str] = {}
    main = max(range(len(samples[0])), key=lambda position: len(samples[0][position]), default=-1)
    batch = tuple(sample[main][0] for sample in samples) if main >= 0 and samples[0][main] else None

    def size(position: int, axis: int) -> Dimension:
        seen = tuple(sample[position][axis] for sample in samples)
        if len(set(seen)) == 1 and not (opens_batch and axis == 0 and seen == batch):
            return seen[0]
        return symbol(names.setdefault(seen, f"size_{len(names)}"))

    return tuple(
        tuple(size(position, axis) for axis in range(len(shape)))
        for position, shape in enumerate(samples[0])
    )


def ranks(sample: Sample) -> tuple[int, ...]:
    """Return the ranks of a sample's inputs."""
    return tuple(map(len, sample))


def fits(pattern: Pattern, sample: Sample) -> bool:
    """Return whether a model that is compiled for `pattern` takes inputs of these shapes."""
    return sizes_of(pattern, sample) is not None


def is_empty(sample: Sample) -> bool:
    """Return whether an input has no elements. Only numpy kernels run such samples."""
    return any(0 in shape for shape in sample)


def sizes_of(pattern: Pattern, sample: Sample) -> dict[Dimension, int] | None:
    """Return what the sizes of a pattern are in a sample; None if the sample doesn't fit."""
    sizes: dict[Dimension, int] = {}
    for shape, actual in zip(pattern, sample, strict=True):
        if len(shape) != len(actual):
            return None
        for size, given in zip(shape, actual, strict=True):
            wanted = sizes.setdefault(size, given) if isinstance(size, SymbolicSize) else size
            if wanted != given:
                return None
    return sizes
