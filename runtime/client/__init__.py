"""The front end: graphs built in Python, and sessions that run them on any target.

    from runtime.client import Graph, Session, constant, ops

The names are those of tf.compat.v1, so that `import runtime.client as tf` runs many programs that
were written for it; `ops` has a function for every op. A module is imported at the first use of one
of its names, so that a server which uses none of them pays for no import.
"""

from __future__ import annotations

import importlib
from typing import Any

from runtime.framework.dtypes import DataType

_NAMES_BY_MODULE: dict[str, tuple[str, ...]] = {
    "ops.array_ops": (
        "boolean_mask", "concat", "expand_dims", "gather", "one_hot", "ones", "ones_like", "pad",
        "rank", "reshape", "sequence_mask", "shape", "size", "slice", "split", "squeeze", "stack",
        "strided_slice", "transpose", "unstack", "where", "zeros", "zeros_like",
    ),
    "ops.clipping": ("clip_by_global_norm", "clip_by_norm", "global_norm"),
    "ops.construction": (
        "Assert", "add_to_collection", "add_to_collections", "colocate_with", "constant",
        "control_dependencies", "convert_to_tensor", "device", "get_collection",
        "get_collection_ref", "group", "identity", "name_scope", "no_op",
        "placeholder", "placeholder_with_default", "tables_initializer", "tuple_",
    ),
    "ops.control_flow": ("cond", "merge", "switch", "while_loop"),
    "ops.data_flow_ops": (
        "FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue",
    ),
    "framework.default_stacks": ("get_default_session",),
    "framework.element_types": ("as_dtype",),
    "fetches": ("InaccessibleTensorError",),
    "ops.functional_ops": ("case", "foldl", "foldr", "map_fn", "scan"),
    "ops.gradients.gradient_registry": (
        "NoGradient", "NotDifferentiable", "RegisterGradient", "custom_gradient", "no_gradient",
    ),
    "ops.gradients.differentiation": (
        "AggregationMethod", "UnconnectedGradients", "gradients", "hessians",
    ),
    "framework.graph": ("Graph", "get_default_graph", "reset_default_graph"),
    "framework.graph_elements": ("GraphKeys",),
    "framework.graph_import": ("import_graph_def",),
    "ops.indexed_slices": ("IndexedSlices", "IndexedSlicesValue"),
    "ops.initializers": (
        "constant_initializer", "glorot_uniform_initializer", "ones_initializer",
        "random_normal_initializer", "random_uniform_initializer", "set_random_seed",
        "truncated_normal_initializer", "zeros_initializer",
    ),
    "ops.math_ops": (
        "abs", "add", "add_n", "argmax", "argmin", "cast", "clip_by_value", "cumprod", "cumsum",
        "div", "divide", "floordiv", "logical_xor", "matmul", "range", "reduce_all", "reduce_any",
        "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "to_double",
        "to_float", "to_int32", "to_int64", "truediv",
    ),
    "training.meta_graph": ("export_meta_graph", "import_meta_graph"),
    "framework.operation": ("Operation", "OperatorNotAllowedInGraphError", "Tensor"),
    "ops.random_ops": (
        "multinomial", "random_normal", "random_shuffle", "random_uniform", "truncated_normal",
    ),
    "session": ("InteractiveSession", "Session"),
    "ops.sparse_values": (
        "SparseTensor", "SparseTensorValue", "sparse_placeholder", "sparse_tensor_to_dense",
    ),
    "ops.state_ops": (
        "count_up_to", "scatter_add", "scatter_div", "scatter_max", "scatter_min", "scatter_mul",
        "scatter_sub", "scatter_update",
    ),
    "ops.tensor_array_ops": ("TensorArray",),
    "framework.tensor_shape": ("TensorShape",),
    "timeline": ("Timeline",),
    "ops.variable_scopes": (
        "AUTO_REUSE", "VariableScope", "get_variable", "get_variable_scope", "variable_scope",
    ),
    "ops.variables": (
        "Variable", "assign", "assign_add", "assign_sub", "global_variables",
        "global_variables_initializer", "is_variable_initialized", "local_variables",
        "local_variables_initializer", "report_uninitialized_variables", "trainable_variables",
        "variables_initializer",
    ),
}  # fmt: skip
_MODULES = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}
# name of an element type (float32, int64, string, …) → DataType
_ELEMENT_TYPES = {data_type.name_on_wire: data_type for data_type in DataType if data_type}

# public name → full name of the module that it stands for
_NAMESPACES = {
    "errors": "runtime.foundation.errors",
    "lookup": "runtime.client.ops.lookup_ops",
    "math": "runtime.client.ops.math_ops",
    "nn": "runtime.client.ops.nn",
    "ops": "runtime.client.ops",
    "raw_ops": "runtime.client.ops",
    "saved_model": "runtime.client.saved_model",
    "train": "runtime.client.training.train",
}
# Protobuf messages that programs construct, to configure sessions and their steps (a step is one
# `Session.run`) and to build graphs.
_MESSAGES = (
    "AttrValue", "ConfigProto", "GPUOptions", "GraphDef", "GraphOptions", "MetaGraphDef",
    "NodeDef", "OptimizerOptions", "RunMetadata", "RunOptions", "ThreadPoolOptionProto",
)  # fmt: skip

# `import *` leaves out element types, names that would hide a builtin or a standard module, and
# the generated functions of ops.
_NOT_STARRED = ("abs", "range", "slice", "math")
__all__ = [name for name in [*_NAMESPACES, *_MESSAGES, *_MODULES] if name not in _NOT_STARRED]
newaxis = None


def __getattr__(name: str) -> Any:
    if name in _ELEMENT_TYPES:
        return _ELEMENT_TYPES[name]
    if name in _NAMESPACES:
        return importlib.import_module(_NAMESPACES[name])
    if name in _MESSAGES:
        return getattr(importlib.import_module("protos"), name)
    if name == "tuple":  # defined as `tuple_`, so that `import *` does not hide the builtin
        name = "tuple_"
    if name in _MODULES:
        return getattr(importlib.import_module(f"runtime.client.{_MODULES[name]}"), name)
    function = importlib.import_module("runtime.client.ops.op_names").function(name)
    if function is None:
        raise AttributeError(f"runtime.client has no {name!r}; `ops` has a function for every op")
    return function


def __dir__() -> list[str]:
    names = importlib.import_module("runtime.client.ops.op_names").OP_NAMES
    return sorted({*_NAMESPACES, *_MESSAGES, *_MODULES, *_ELEMENT_TYPES, *names})
