"""From a graph and what a step asks of it to an executor: prune, inline, choose, build.

Guarantees: an executor depends only on nodes and functions, which never change, so it stays valid
when the graph is extended, and sessions that share a graph share executors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.dataflow_graph import V1_CONTROL_FLOW
from runtime.executors.step import Executor, FunctionCaller, Step
from runtime.executors.step_plan import StepPlan
from runtime.foundation.errors import InvalidArgumentError, NotFoundError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.kernel_registry import KernelRegistry
from runtime.graph.function_inlining import inline_functions
from runtime.graph.function_library import FunctionBody, FunctionLibrary
from runtime.graph.graph import Graph
from runtime.graph.node import Endpoint, Node
from runtime.graph.pruning import StepGraph, prune

ExecutorFactory = Callable[[StepGraph, KernelRegistry], Executor]
_HANDLE_OPS = frozenset(("VarHandleOp",))  # stateful by signature, but nothing happens in them
_MAX_CALL_DEPTH = 200  # recursive functions end in an error, not in a crash


def compile_step(
    graph: Graph,
    kernels: KernelRegistry,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
    build: ExecutorFactory,
) -> Executor:
    """The executor for these feeds, fetches and targets; errors as `prune` raises them."""
    step_graph = prune(graph, feeds, fetches, targets)
    inline_functions(step_graph, graph.library)
    _drop_unreached(step_graph)
    return build(step_graph, kernels)


def build_executor(graph: StepGraph, kernels: KernelRegistry) -> Executor:
    """A step plan where order is enough, the dataflow executor where it is not."""
    if any(_needs_dataflow(node, kernels) for node in graph.nodes):
        return DataflowExecutor(graph, kernels)
    return StepPlan(graph, kernels)


# By `ConfigProto.experimental.executor_type` (TF: executor_factory.h). The single-threaded one
# refuses graphs with loops; DATAFLOW is ours, for graphs whose branches should run side by side.
EXECUTOR_FACTORIES: dict[str, ExecutorFactory] = {
    "": build_executor,
    "DEFAULT": build_executor,
    "SINGLE_THREADED_EXECUTOR": StepPlan,
    "DATAFLOW": DataflowExecutor,
}


def executor_factory(executor_type: str) -> ExecutorFactory:
    """The factory of that type; NotFoundError names the registered ones when there is none."""
    try:
        return EXECUTOR_FACTORIES[executor_type]
    except KeyError:
        known = ", ".join(filter(None, EXECUTOR_FACTORIES))
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {executor_type} "
            f"Registered executor types: {known}"
        ) from None


def _needs_dataflow(node: Node, kernels: KernelRegistry) -> bool:
    return node.op in V1_CONTROL_FLOW or any(k.asynchronous for k in kernels.kernels_of(node.op))


def _drop_unreached(graph: StepGraph) -> None:
    """Nodes of inlined bodies that neither results nor side effects need are not run."""
    reached: set[Node] = set()
    pending = [node for node, _ in graph.fetches] + graph.targets
    pending += [
        node for node in graph.nodes if node.info.is_stateful and node.op not in _HANDLE_OPS
    ]
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += [source for source, _ in node.inputs]
            pending += node.control_inputs
    arguments = set(graph.arguments)
    graph.nodes = [node for node in graph.nodes if node in reached or node in arguments]


def function_caller(library: FunctionLibrary, kernels: KernelRegistry) -> FunctionCaller:
    """What runs functions of `library` for the kernels that call them (If, While, Map, …)."""

    def call(step: Step, function: NameAttrList, arguments: Sequence[Any]) -> list[Any]:
        key = library.key(function)
        executor = library.compiled.get(key)
        if executor is None:
            executor = library.compiled[key] = _compile_body(library, function, kernels)
        if len(arguments) != executor.argument_count:
            raise InvalidArgumentError(
                f"Function {function.name} takes {executor.argument_count} arguments, "
                f"got {len(arguments)}"
            )
        with _depth:
            return executor.executor.run(step, arguments)

    return call


class _CompiledBody:
    """The executor of a function's body."""

    __slots__ = ("argument_count", "executor")

    def __init__(self, executor: Executor, argument_count: int) -> None:
        self.executor = executor
        self.argument_count = argument_count


def _compile_body(
    library: FunctionLibrary, function: NameAttrList, kernels: KernelRegistry
) -> _CompiledBody:
    body = library.body(function)
    graph = _body_graph(body)
    inline_functions(graph, library)
    _drop_unreached(graph)
    return _CompiledBody(build_executor(graph, kernels), len(body.arguments))


def _body_graph(body: FunctionBody) -> StepGraph:
    """The body as a step's graph; names carry the function's, for kernels that keep state."""
    copies = {
        node: node.clone(node.name if node in body.arguments else f"{body.name}/{node.name}")
        for node in body.nodes
    }

    def copied(endpoint: Endpoint) -> Endpoint:
        return copies[endpoint[0]], endpoint[1]

    for copy in copies.values():
        copy.inputs = [copied(endpoint) for endpoint in copy.inputs]
        copy.control_inputs = [copies[control] for control in copy.control_inputs]
    return StepGraph(
        list(copies.values()),
        [copies[argument] for argument in body.arguments],
        [copied(endpoint) for endpoint in body.results],
        [copies[node] for node in body.control_results],
    )


class _Depth:
    """Counts nested calls of one thread."""

    def __init__(self) -> None:
        self._local = threading.local()

    def __enter__(self) -> None:
        depth = getattr(self._local, "depth", 0) + 1
        if depth > _MAX_CALL_DEPTH:
            raise InvalidArgumentError(f"Function calls nest deeper than {_MAX_CALL_DEPTH}")
        self._local.depth = depth

    def __exit__(self, *exception: object) -> None:
        self._local.depth -= 1


_depth = _Depth()
