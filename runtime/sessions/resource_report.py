"""What a session holds, for people: its variables, queues and other resources, and a histogram.

Guarantees: any thread may call these functions while steps run. No value is copied or marked as
shared, except the variable of a histogram, whose next update then writes into a copy.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import numpy as np

from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.foundation.priority_gate import gate
from runtime.foundation.running_task import check_task
from runtime.framework.dtypes import DataType
from runtime.framework.resource_manager import Resource, ResourceManager
from runtime.framework.resources.queues import Queue
from runtime.framework.resources.variable import Variable

MAX_VALUES = 1 << 24  # values that a histogram looks at; of more, it takes every n-th
_CHUNK = 1 << 16  # values between two checks; 0.5 MB as float64, less than 1 ms


@dataclasses.dataclass(frozen=True, slots=True)
class VariableSummary:
    """A variable; `shape` is None if it has no value."""

    name: str
    dtype: str
    shape: tuple[int, ...] | None
    bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceSummary:
    """Another resource. `size` counts what is in it, `capacity` what fits; None if not known."""

    name: str
    kind: str
    size: int | None
    capacity: int | None
    bytes: int


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceReport:
    """The resources of a session by name; `is_cut` is whether a list has more than it shows."""

    variables: list[VariableSummary]
    queues: list[ResourceSummary]
    others: list[ResourceSummary]
    is_cut: bool


@dataclasses.dataclass(frozen=True, slots=True)
class Histogram:
    """The distribution of a variable's values.

    `count` is the number of all values, `examined` of those that were looked at, and `non_finite`
    of those among them that are NaN or infinite. `edges` has one entry more than `counts`. Of no
    finite value, `minimum`, `maximum`, `mean` and `std` are None, and the lists are empty.
    """

    count: int
    examined: int
    non_finite: int
    minimum: float | None
    maximum: float | None
    mean: float | None
    std: float | None
    edges: list[float]
    counts: list[int]


def report_resources(resources: ResourceManager, most: int) -> ResourceReport:
    """Return what is in `resources`, at most `most` variables, queues and others each."""
    variables: list[tuple[str, Variable]] = []
    queues: list[tuple[str, Resource]] = []
    others: list[tuple[str, Resource]] = []
    for _, name, resource in resources:
        if isinstance(resource, Variable):
            variables.append((name, resource))
        else:
            (queues if isinstance(resource, Queue) else others).append((name, resource))
    lists = variables, queues, others
    for each in lists:
        each.sort(key=lambda entry: entry[0])
    return ResourceReport(
        [_describe_variable(*entry) for entry in variables[:most]],
        [_describe(*entry) for entry in queues[:most]],
        [_describe(*entry) for entry in others[:most]],
        any(len(each) > most for each in lists),
    )


def _describe_variable(name: str, variable: Variable) -> VariableSummary:
    array = variable.peek()
    held = 0 if array is None else array.nbytes
    if array is not None and array.dtype.hasobject:
        held = max(held, variable.bytes_held)  # of strings; a fork that shares them holds none
    shape = None if array is None else array.shape
    return VariableSummary(name, variable.dtype.name_on_wire, shape, held)


def _describe(name: str, resource: Resource) -> ResourceSummary:
    kind = resource.kind if isinstance(resource, Queue) else type(resource).__name__
    size = getattr(resource, "size", None)
    capacity = getattr(resource, "capacity", None)
    return ResourceSummary(
        name,
        kind,
        size if isinstance(size, int) else None,
        capacity if isinstance(capacity, int) and capacity > 0 else None,
        resource.bytes_held,
    )


def variable_histogram(resources: ResourceManager, name: str, bins: int) -> Histogram:
    """Return the histogram of the variable `name`, with `bins` bins of equal width.

    Must run on a thread of a pool: it ends when its task ends, and waits while normal steps are
    pending. Takes 1 MB beside the value. Raises NotFoundError if there is no such variable, and
    InvalidArgumentError if its values are no real numbers.
    """
    variable = _find(resources, name)
    if variable.peek() is None:
        raise InvalidArgumentError(f"Variable {name} has no value yet")
    kind = variable.dtype
    if not (kind.is_floating or kind.is_integer or kind is DataType.BOOL):
        raise InvalidArgumentError(
            f"Variable {name} has the type {kind.name_on_wire}; only real numbers have a histogram"
        )
    with np.errstate(all="ignore"):
        return _histogram(variable.read(), bins)


def _find(resources: ResourceManager, name: str) -> Variable:
    for _, each, resource in resources:
        if each == name and isinstance(resource, Variable):
            return resource
    raise NotFoundError(f"The session has no variable {name!r:.120}")


def _histogram(values: np.ndarray, bins: int) -> Histogram:
    count, examined, finite = values.size, 0, 0
    total, least, most = 0.0, np.inf, -np.inf
    for chunk in _chunks(values):
        examined += chunk.size
        numbers = chunk[np.isfinite(chunk)]
        if numbers.size:
            finite += numbers.size
            total += float(numbers.sum())
            least, most = min(least, float(numbers.min())), max(most, float(numbers.max()))
    if not finite:
        return Histogram(count, examined, examined, None, None, None, None, [], [])
    mean = total / finite
    edges = _edges(least, most, bins)
    counts, squares = np.zeros(len(edges) - 1, np.int64), 0.0
    for chunk in _chunks(values):
        numbers = chunk[np.isfinite(chunk)]
        counts += np.histogram(numbers, edges)[0] if least < most else numbers.size
        squares += float(np.square(numbers - mean).sum())
    std = float(np.sqrt(squares / finite))
    return Histogram(
        count, examined, examined - finite, least, most, mean, std, edges.tolist(), counts.tolist()
    )


def _edges(least: float, most: float, bins: int) -> np.ndarray:
    if least == most:
        return np.array([least, most])
    if np.isfinite(most - least):
        return np.linspace(least, most, bins + 1)
    return np.linspace(least / 2, most / 2, bins + 1) * 2


def _chunks(values: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the values as float64, at most MAX_VALUES of them, and let normal steps go first."""
    if values.flags.f_contiguous and not values.flags.c_contiguous:
        values = values.T
    flat = values.reshape(-1) if values.flags.c_contiguous else values.flat
    step = -(-values.size // MAX_VALUES) or 1
    for start in itertools.count(0, _CHUNK * step):
        if start >= values.size:
            return
        check_task()
        gate.pass_through()
        yield np.asarray(flat[start : start + _CHUNK * step : step]).astype(np.float64)
