"""OpEmitter: a row of the emitters' tables, which says how an op is written, and for which types.

Partition reads the same rows as emission, so that both agree on what can be in a cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from runtime.clusters.emission import Emission
from runtime.clusters.values import Value
from runtime.framework.dtypes import DataType
from runtime.graph.node import Node

# Writes a node: (emission, node, values of its inputs) → value of its output, or of all of them.
# Raises `DeclinedError` or `InexpressibleError` if it can't.
Emitter: TypeAlias = Callable[[Emission, Node, Sequence[Value]], Value | list[Value]]

FLOAT = frozenset((DataType.FLOAT,))
FLOATS = frozenset((DataType.FLOAT, DataType.DOUBLE))
INTEGERS = frozenset((DataType.INT32, DataType.INT64))
NUMBERS = FLOATS | INTEGERS


@dataclasses.dataclass(frozen=True, slots=True)
class OpEmitter:
    """How nodes of the op `op` are written.

    `types` maps attributes that name an element type to those that can be written. `constants` are
    the inputs that must be constants of the graph, or follow from sizes alone. An op `is_heavy` if
    it alone makes a cluster worth compiling. `check`, if given, returns whether a node can be
    written as far as its attributes tell. An op that `uses_lists` has inputs or outputs that are
    tensor lists, which stay inside of a cluster.
    """

    op: str
    emit: Emitter
    types: Mapping[str, frozenset[DataType]] = dataclasses.field(default_factory=dict)
    constants: tuple[int, ...] = ()
    is_heavy: bool = False
    check: Callable[[Node], bool] | None = None
    uses_lists: bool = False

    def takes(self, node: Node) -> bool:
        """Return whether the types and attributes of `node` can be written."""
        return all(node.attr(name) in allowed for name, allowed in self.types.items()) and (
            self.check is None or self.check(node)
        )
