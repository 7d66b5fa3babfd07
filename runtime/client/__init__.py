"""The front end: graphs built in Python, and sessions that run them on any target.

    from runtime.client import Graph, Session, constant, ops

The names are those of tf.compat.v1; `ops` has a function for every op. They are imported at first
use, so that a server which needs none of them does not pay.
"""

from __future__ import annotations

import importlib
from typing import Any

from runtime.framework.dtypes import DataType

_HOME: dict[str, tuple[str, ...]] = {
    "construction": (
        "add_to_collection", "add_to_collections", "colocate_with", "constant",
        "control_dependencies", "convert_to_tensor", "device", "get_collection",
        "get_collection_ref", "gradients", "group", "identity", "name_scope", "no_op",
        "placeholder", "placeholder_with_default", "tables_initializer", "tuple_",
    ),
    "control_flow": ("cond", "merge", "switch", "while_loop"),
    "default_stacks": ("get_default_session",),
    "element_types": ("as_dtype",),
    "fetches": ("InaccessibleTensorError",),
    "graph": ("Graph", "get_default_graph", "reset_default_graph"),
    "graph_elements": ("GraphKeys",),
    "graph_import": ("import_graph_def",),
    "initializers": (
        "constant_initializer", "glorot_uniform_initializer", "ones_initializer",
        "random_normal_initializer", "random_uniform_initializer", "set_random_seed",
        "truncated_normal_initializer", "zeros_initializer",
    ),
    "meta_graph": ("export_meta_graph", "import_meta_graph"),
    "operation": ("Operation", "OperatorNotAllowedInGraphError", "Tensor"),
    "session": ("InteractiveSession", "Session"),
    "sparse_values": ("SparseTensor", "SparseTensorValue"),
    "tensor_shape": ("TensorShape",),
    "timeline": ("Timeline",),
    "variable_scopes": (
        "AUTO_REUSE", "VariableScope", "get_variable", "get_variable_scope", "variable_scope",
    ),
    "variables": (
        "Variable", "assign", "assign_add", "assign_sub", "global_variables",
        "global_variables_initializer", "is_variable_initialized", "local_variables",
        "local_variables_initializer", "report_uninitialized_variables", "trainable_variables",
        "variables_initializer",
    ),
}  # fmt: skip
_MODULES = {name: module for module, names in _HOME.items() for name in names}
# float32, int64, string, …
_ELEMENT_TYPES = {data_type.name_on_wire: data_type for data_type in DataType if data_type}

# modules that are used as such, and where they are
_NAMESPACES = {
    "errors": "runtime.foundation.errors",
    "ops": "runtime.client.ops",
    "raw_ops": "runtime.client.ops",
    "saved_model": "runtime.client.saved_model",
    "train": "runtime.client.train",
}
# messages that programs make: sessions, steps and graphs are told with them
_MESSAGES = (
    "AttrValue", "ConfigProto", "GPUOptions", "GraphDef", "GraphOptions", "MetaGraphDef",
    "NodeDef", "OptimizerOptions", "RunMetadata", "RunOptions", "ThreadPoolOptionProto",
)  # fmt: skip

__all__ = [*_NAMESPACES, *_MESSAGES, *_MODULES]  # not the types: `bool` is Python's for `import *`


def __getattr__(name: str) -> Any:
    if name in _ELEMENT_TYPES:
        return _ELEMENT_TYPES[name]
    if name in _NAMESPACES:
        return importlib.import_module(_NAMESPACES[name])
    if name in _MESSAGES:
        return getattr(importlib.import_module("protos"), name)
    if name == "tuple":  # TensorFlow's name of it; no builtin is hidden by `import *`
        name = "tuple_"
    if name not in _MODULES:
        raise AttributeError(f"runtime.client has no {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"runtime.client.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, *_ELEMENT_TYPES])
