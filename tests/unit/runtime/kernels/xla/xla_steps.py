"""Runs one Xla… op; its functions are graphs of scalars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.client import Graph, Session, constant, ops
from runtime.client.framework.function_graph import FunctionGraph
from runtime.client.framework.tensor_shape import TensorShape
from runtime.framework.dtypes import DataType

Body = tuple[Sequence[DataType], Callable[..., Any]]


def run(op: str, *inputs: Any, functions: Mapping[str, Body] | None = None, **attrs: Any) -> Any:
    """Return the outputs of an op; an attribute of `functions` is (argument types, body)."""
    with Graph().as_default() as graph:
        for key, (types, body) in (functions or {}).items():
            function = FunctionGraph(key, graph)
            arguments = [function.add_argument(each, TensorShape([])) for each in types]
            function.outputs = [function.build(lambda b=body, a=arguments: b(*a))]
            graph.add_functions(pb.FunctionDefLibrary(function=[function.to_function_def()]))
            attrs[key] = function.name
        given = [
            [constant(value) for value in each] if isinstance(each, list) else constant(each)
            for each in inputs
        ]
        result = ops.__getattr__(op)(*given, **attrs)
        with Session() as session:
            return session.run(result)


def vector(*values: int) -> np.ndarray:
    return np.array(values, np.int32)
