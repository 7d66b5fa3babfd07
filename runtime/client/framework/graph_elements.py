"""Lookup of a graph's operations and tensors, and its collections.

TF: tensorflow/python/framework/ops.py (Graph.as_graph_element, GraphKeys)
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from runtime.client.framework.argument_types import CollectionMember, ElementLike
from runtime.client.framework.operation import Operation, Tensor

_TENSOR_FORM = 'Tensor names must be of the form "<op_name>:<output_index>".'


class GraphKeys:
    """The standard names of collections."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MODEL_VARIABLES = "model_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    REGULARIZATION_LOSSES = "regularization_losses"
    LOSSES = "losses"
    UPDATE_OPS = "update_ops"
    TRAIN_OP = "train_op"
    GLOBAL_STEP = "global_step"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    SAVERS = "savers"


class GraphElements:
    """The part of Graph that finds operations and tensors, and that holds collections."""

    def __init__(self) -> None:
        self._operations: dict[str, Operation] = {}
        self._collections: dict[Hashable, list[CollectionMember]] = {}

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation `name`.

        Raises KeyError if there is none, TypeError if `name` is not a string.
        """
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_tensor=False)
        assert isinstance(found, Operation)
        return found

    def find_operation(self, name: str) -> Operation | None:
        """Return the operation `name`, or None if there is none."""
        return self._operations.get(name)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Return the tensor `name`, which has the form `operation:index`.

        Raises KeyError if there is none, ValueError if the name is malformed, TypeError if `name`
        is not a string.
        """
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        found = self.as_graph_element(name, allow_operation=False)
        assert isinstance(found, Tensor)
        return found

    def as_graph_element(
        self, element: ElementLike, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Operation | Tensor:
        """Return the operation or tensor of this graph that `element` or its name refers to.

        Raises KeyError if a name is unknown, ValueError if a name is malformed or the element
        belongs to another graph, TypeError for anything else.
        """
        if not allow_tensor and not allow_operation:
            raise ValueError("allow_tensor and allow_operation can't both be False.")
        kinds = [
            *(["Tensor"] if allow_tensor else []),
            *(["Operation"] if allow_operation else []),
        ]
        if isinstance(element, bytes):
            element = element.decode()
        if isinstance(element, str):
            return self._by_name(element, allow_tensor, allow_operation)
        if hasattr(element, "as_graph_element"):  # a variable has this method
            element = element.as_graph_element()
        if isinstance(element, Tensor) and allow_tensor:
            tensor_graph: object = element.graph
            if tensor_graph is not self:
                raise ValueError(f"Tensor {element} is not an element of this graph.")
            return element
        if isinstance(element, Operation) and allow_operation:
            operation_graph: object = element.graph
            if operation_graph is not self:
                raise ValueError(f"Operation {element} is not an element of this graph.")
            return element
        raise TypeError(f"Can not convert a {type(element).__name__} into a {' or '.join(kinds)}.")

    def _by_name(self, name: str, allow_tensor: bool, allow_operation: bool) -> Operation | Tensor:
        if ":" in name:
            if allow_tensor:
                return self._tensor(name)
            raise ValueError(f"Name '{name}' appears to refer to a Tensor, not a Operation.")
        if name not in self._operations:
            if not allow_operation:
                raise ValueError(
                    f"The name '{name}' looks like an (invalid) Operation name, not a Tensor. "
                    f"{_TENSOR_FORM}"
                )
            raise KeyError(f"The name '{name}' refers to an Operation not in the graph.")
        if not allow_operation:
            raise ValueError(
                f"The name '{name}' refers to an Operation, not a Tensor. {_TENSOR_FORM}"
            )
        return self._operations[name]

    def _tensor(self, name: str) -> Tensor:
        parts = re.fullmatch(r"([^:]*):(-?\d+)", name)
        if parts is None:
            raise ValueError(
                f"The name '{name}' looks a like a Tensor name, but is not a valid one. "
                f"{_TENSOR_FORM}"
            )
        operation = self._operations.get(parts[1])
        if operation is None:
            raise KeyError(
                f"The name '{name}' refers to a Tensor which does not exist. The operation, "
                f"'{parts[1]}', does not exist in the graph."
            )
        try:
            return operation.outputs[int(parts[2])]
        except IndexError:
            raise KeyError(
                f"The name '{name}' refers to a Tensor which does not exist. The operation, "
                f"'{parts[1]}', exists but only has {len(operation.outputs)} outputs."
            ) from None

    # Collections

    def add_to_collection(self, name: Hashable, value: CollectionMember) -> None:
        """Append `value` to the collection `name`."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: str | Iterable[Hashable], value: CollectionMember) -> None:
        """Append `value` to several collections, or to one if `names` is a string."""
        for name in {names: None} if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection(self, name: Hashable, scope: str | None = None) -> list[CollectionMember]:
        """Return a copy of a collection.

        If `scope` (a pattern) is given, only members whose name matches it are returned.
        """
        members = self._collections.get(name, [])
        if scope is None:
            return list(members)
        pattern = re.compile(scope)
        return [each for each in members if hasattr(each, "name") and pattern.match(each.name)]

    def get_collection_ref(self, name: Hashable) -> list[CollectionMember]:
        """Return the collection itself, not a copy; it is created if there is none."""
        return self._collections.setdefault(name, [])

    def get_all_collection_keys(self) -> list[str]:
        """Return the names of the collections that are named by strings."""
        return [name for name in self._collections if isinstance(name, str)]

    def clear_collection(self, name: Hashable) -> None:
        """Remove a collection, if there is one of that name."""
        self._collections.pop(name, None)
