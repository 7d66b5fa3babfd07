"""Fetch structures: find the tensors and targets to run, and build the result structure.

TF: tensorflow/python/client/session.py (_FetchMapper, _FetchHandler)
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Hashable, Mapping, Sequence

from runtime.client.framework.argument_types import Fetches, Structure
from runtime.client.framework.graph import Graph
from runtime.client.framework.operation import Operation, Tensor
from runtime.client.ops.indexed_slices import IndexedSlices, IndexedSlicesValue
from runtime.client.ops.sparse_values import SparseTensor, SparseTensorValue
from runtime.framework.tensor_value import TensorValue

# A function that builds a part of the result structure from {tensor: fetched value}.
Build = Callable[[Mapping[Tensor, TensorValue]], Structure]


class InaccessibleTensorError(ValueError):
    """Raised if a fetched tensor or operation is marked as not fetchable in its graph.

    TF: tensorflow/python/framework/errors_impl.py (InaccessibleTensorError)
    """


class FetchHandler:
    """The tensors and targets that a structure of fetches needs, each listed once."""

    def __init__(self, graph: Graph, fetches: Fetches) -> None:
        """Take tensors, operations, names, variables, or nested lists, tuples and dicts of these.

        Raises TypeError, ValueError and InaccessibleTensorError with TensorFlow's messages.
        """
        self._graph = graph
        self._tensors: dict[Tensor, None] = {}
        self._targets: dict[Operation, None] = {}
        self._build = self._plan(fetches)

    @property
    def tensors(self) -> list[Tensor]:
        """The tensors whose values must be fetched."""
        return list(self._tensors)

    @property
    def targets(self) -> list[Operation]:
        """The operations that must run and have no value to fetch."""
        return list(self._targets)

    def build(self, values: Mapping[Tensor, TensorValue]) -> Structure:
        """Return the structure with each fetch replaced by its value, operations by None."""
        return self._build(values)

    def _plan(self, fetch: Fetches) -> Build:
        if fetch is None:
            raise TypeError(
                f'Argument `fetch` = {fetch} has invalid type "NoneType". Cannot be None'
            )
        if isinstance(fetch, list | tuple):
            return _sequence(fetch, [self._plan(each) for each in fetch])
        if isinstance(fetch, Mapping):
            return _mapping(fetch, {key: self._plan(each) for key, each in fetch.items()})
        if isinstance(fetch, SparseTensor):
            parts = [self._plan(each) for each in fetch.parts]
            return lambda values: SparseTensorValue(*(part(values) for part in parts))
        if isinstance(fetch, IndexedSlices):
            found = [self._plan(each) for each in fetch.parts]
            missing = [None] * (len(IndexedSlicesValue._fields) - len(found))
            return lambda values: IndexedSlicesValue(*(each(values) for each in found), *missing)
        return self._plan_element(fetch)

    def _plan_element(self, fetch: Fetches) -> Build:
        element = self._find(fetch)
        if not self._graph.is_fetchable(element):
            operation = element.op if isinstance(element, Tensor) else element
            raise InaccessibleTensorError(
                f"Operation {operation.name} has been marked as not fetchable. Typically this "
                "happens when it is defined in another function or code block. Use return values, "
                "explicit Python locals or TensorFlow collections to access it."
            )
        if isinstance(element, Operation):
            self._targets[element] = None
            return lambda _: None
        self._tensors[element] = None
        return lambda values: values[element]

    def _find(self, fetch: Fetches) -> Operation | Tensor:
        try:
            return self._graph.as_graph_element(fetch)
        except TypeError as error:
            raise TypeError(
                f'Argument `fetch` = {fetch} has invalid type "{type(fetch).__name__}" must be a '
                f"string or Tensor. ({error})"
            ) from None
        except (ValueError, KeyError) as error:
            shown = fetch.decode() if isinstance(fetch, bytes) else fetch
            raise ValueError(
                f"Argument `fetch` = {shown} cannot be interpreted as a Tensor. ({error})"
            ) from None


def _sequence(fetch: Sequence[Fetches], parts: list[Build]) -> Build:
    if hasattr(fetch, "_fields"):  # a namedtuple takes its fields as separate arguments
        return lambda values: type(fetch)(*(part(values) for part in parts))
    make = list if isinstance(fetch, list) else tuple
    return lambda values: make(part(values) for part in parts)


def _mapping(fetch: Mapping[Hashable, Fetches], parts: dict[Hashable, Build]) -> Build:
    def build(values: Mapping[Tensor, TensorValue]) -> Structure:
        items = [(key, part(values)) for key, part in parts.items()]
        if isinstance(fetch, collections.defaultdict):
            return type(fetch)(fetch.default_factory, items)
        return type(fetch)(items)  # type: ignore[call-arg] # dict and its subclasses take items

    return build
