"""Patterns: groups of operations for which an engine has something faster.

A pattern is a function of an operation, the last one of its group. It returns a value that is equal
to the operation's only output, or None if there is nothing to replace. The value may come from new
operations, which it adds to the emission; what nobody reads any more is removed afterwards.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import TypeAlias

from runtime.clusters.emission import Emission, Operation, live_operations
from runtime.clusters.values import Value


class OperationGraph:
    """The operations so far of an emission that is made anew, and who reads their results."""

    def __init__(self, emission: Emission, readers: dict[str, int]) -> None:
        self.emission = emission
        self._readers = readers
        self._producers: dict[str, Operation] = {}
        self._seen = 0

    def producer(self, value: Value | None, *op_types: str) -> Operation | None:
        """Return the operation that makes `value` if its type is one of `op_types`, else None."""
        found = None if value is None else self._producer(value)
        return found if found is not None and found.op_type in op_types else None

    def _producer(self, value: Value) -> Operation | None:
        for operation in self.emission.operations[self._seen :]:
            self._producers.update((each.name, operation) for each in operation.outputs)
        self._seen = len(self.emission.operations)
        return self._producers.get(value.name)

    def is_made(self, value: Value) -> bool:
        """Return whether an operation makes `value`, which otherwise is an input or an array."""
        return self._producer(value) is not None

    def only(self, value: Value | None, *op_types: str) -> Operation | None:
        """Return `producer` if nothing else than one operation reads `value`."""
        if value is None or self._readers.get(value.name, 1) != 1:
            return None
        return self.producer(value, *op_types)

    def replace(self, old: Value, new: Value) -> None:
        """Note that what read `old` reads `new` from now on."""
        readers = self._readers.get(old.name, 1)
        self._readers[new.name] = self._readers.get(new.name, 0) + readers


Pattern: TypeAlias = Callable[[OperationGraph, Operation], Value | None]


def apply_pattern(
    emission: Emission, outputs: Sequence[Value], pattern: Pattern
) -> tuple[Value, ...]:
    """Replace what `pattern` matches in the model; return the values of `outputs` after it."""
    results = (*outputs, *emission.finite)
    operations = live_operations(emission.take_operations(), results)
    read = [value for operation in operations for value in operation.inputs if value is not None]
    graph = OperationGraph(emission, collections.Counter(each.name for each in (*read, *results)))
    replaced: dict[str, Value] = {}
    for operation in operations:
        operation.inputs = [
            None if value is None else replaced.get(value.name, value) for value in operation.inputs
        ]
        emission.node_name = operation.name
        found = pattern(graph, operation) if len(operation.outputs) == 1 else None
        if found is None:
            emission.operations.append(operation)
            continue
        old = operation.outputs[0]
        assert (found.dtype, found.model_shape) == (old.dtype, old.model_shape), operation.name
        replaced[old.name] = found
        graph.replace(old, found)
    emission.finite = [replaced.get(value.name, value) for value in emission.finite]
    return tuple(replaced.get(value.name, value) for value in outputs)
