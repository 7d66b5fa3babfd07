"""Check the feeds, fetches and options that a session step has in every form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

import protos as pb
from runtime.api import DataType, DirectSession
from runtime.errors import InvalidArgumentError
from server.steps.step_request import StepRequest

Shape = tuple[int, ...] | None  # None if the rank is unknown; −1 for an unknown dimension
TensorInfo = Callable[[str], tuple[DataType, Shape]]

PROCESS_ONLY = (DataType.RESOURCE, DataType.VARIANT)  # types whose values exist in one process only


class StepSession(Protocol):
    """The session that a step is read for; its attributes may be used on any thread."""

    @property
    def session(self) -> DirectSession:
        """The session."""

    @property
    def tensor_info(self) -> TensorInfo:
        """Returns the element type and static shape of a tensor by name; raises if unknown."""


def not_feedable(name: str, data_type: DataType) -> InvalidArgumentError:
    """Return the error for a feed whose type is in PROCESS_ONLY."""
    return InvalidArgumentError(
        f"Tensor {name} is of type {data_type.tf_name}, which cannot be fed from the wire"
    )


def check_feed(array: np.ndarray, index: int, name: str, data_type: DataType, shape: Shape) -> None:
    """Raise InvalidArgumentError unless an array has the element type and shape of the graph.

    `index` is the position of the feed in the request.

    TF: direct_session.cc (message for a wrong type), python/client/session.py (for a wrong shape)
    """
    if array.dtype != data_type.numpy:
        got = DataType.STRING if array.dtype == object else _type_of(array)
        raise InvalidArgumentError(
            f"Expects arg[{index}] to be {data_type.tf_name} but {got.tf_name} is provided"
        )
    if shape is None:
        return
    fits = len(shape) == array.ndim and all(
        wanted in (-1, size) for wanted, size in zip(shape, array.shape, strict=True)
    )
    if not fits:
        wanted = tuple(None if size < 0 else size for size in shape)
        raise InvalidArgumentError(
            f"Cannot feed value of shape {array.shape} for Tensor {name}, which has shape {wanted}"
        )


def _type_of(array: np.ndarray) -> DataType:
    return next(t for t in DataType if t and t.numpy == array.dtype)


def fetch_types(fetches: Iterable[str], tensor_info: TensorInfo) -> list[DataType]:
    """Return the element types of the fetches.

    Raises InvalidArgumentError if a type is in PROCESS_ONLY.
    """
    types = []
    for name in fetches:
        data_type, _ = tensor_info(name)
        if data_type in PROCESS_ONLY:
            raise InvalidArgumentError(
                f"Tensor {name} is of type {data_type.tf_name}, which cannot be fetched"
            )
        types.append(data_type)
    return types


def set_options(step: StepRequest, options: pb.RunOptions, *, pool_is_chosen: bool) -> None:
    """Set the options of a step, and an empty RunMetadata if the options request a report."""
    step.options = options
    step.pool_is_chosen = pool_is_chosen
    if options.trace_level != pb.RunOptions.NO_TRACE or options.output_partition_graphs:
        step.metadata = pb.RunMetadata()
