"""Compiles the executor of a step: prunes the graph, inlines functions, optimises, places, builds.

Guarantees: an executor depends only on nodes and functions, which are immutable. Therefore an
executor stays valid when the graph is extended, and sessions with the same graph can share it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence

import protos as pb
from runtime.executors.adaptive import AdaptiveExecutor
from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.dataflow_graph import V1_CONTROL_FLOW
from runtime.executors.derived_executor import Clustering, DerivedExecutor, without_clusters
from runtime.executors.partitioned import PartitionedExecutor
from runtime.executors.step import Executor, FunctionRunner, Step
from runtime.executors.step_plan import StepPlan
from runtime.foundation.errors import InvalidArgumentError, NotFoundError, OpError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.op_kernel import Deferred
from runtime.framework.tensor_value import TensorValue
from runtime.graph.function_library import FunctionBody, FunctionLibrary
from runtime.graph.gradients.symbolic_gradient import function_body
from runtime.graph.graph import Graph
from runtime.graph.node import Endpoint, Node
from runtime.graph.passes.function_inlining import called_function
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.partition import partition
from runtime.graph.passes.pruning import StepGraph, prune
from runtime.graph.passes.variable_only_part import VariableOnlyPart, split_variable_only_part

ExecutorFactory = Callable[[StepGraph, KernelRegistry, "FunctionExecutors"], Executor]
StepPlacer = Callable[[StepGraph], str | None]
# Ops whose kernels block no thread while a function that they call waits for another step.
_FUNCTIONAL = frozenset(("If", "StatelessIf", "Case", "StatelessCase", "While", "StatelessWhile"))
_MAX_CALL_DEPTH = 200  # so that infinite recursion raises an error instead of a crash


def compile_step(
    graph: Graph,
    kernels: KernelRegistry,
    feeds: Sequence[str],
    fetches: Sequence[str],
    targets: Sequence[str],
    build: ExecutorFactory,
    functions: FunctionExecutors,
    place: StepPlacer,
    *,
    is_divisible: bool = True,
    add_clusters: Clustering = without_clusters,
) -> Executor:
    """Return the executor for `feeds`, `fetches` and `targets`; raise what `prune` raises.

    `place` assigns devices to the nodes. If the step runs on several devices, `place` must return
    the client device, and the graph is partitioned; otherwise `place` must return None. If
    `is_divisible`, a step on one device computes its variable-only part separately. `add_clusters`
    is applied to the executor that `build` returns for the step, or for the rest of it.
    """
    step_graph = prune(graph, feeds, fetches, targets)
    functions.transform(step_graph)
    for node in step_graph.nodes:  # passes have made lists by appending
        node.fit_edges()
    client_device = place(step_graph)
    if client_device is not None:
        return PartitionedExecutor(partition(step_graph, client_device), kernels)
    split = functions.split(step_graph) if is_divisible else None
    if split is None:
        return add_clusters(build(step_graph, kernels, functions), kernels, {})
    return DerivedExecutor(
        step_graph,
        split,
        kernels,
        lambda graph: build(graph, kernels, functions),
        functions.max_folded_bytes,
        add_clusters,
    )


def build_executor(
    graph: StepGraph, kernels: KernelRegistry, functions: FunctionExecutors
) -> Executor:
    """Return a dataflow executor if a node requires it, otherwise one that has a step plan."""
    if any(functions.needs_dataflow(node) for node in graph.nodes):
        return DataflowExecutor(graph, kernels)
    plan = StepPlan(graph, kernels)
    # Only expensive nodes are worth a thread, so a plan with fewer than two gains nothing.
    return AdaptiveExecutor(plan, kernels) if plan.expensive_count >= 2 else plan


def _build_step_plan(
    graph: StepGraph, kernels: KernelRegistry, functions: FunctionExecutors
) -> Executor:
    return StepPlan(graph, kernels)


def _build_dataflow(
    graph: StepGraph, kernels: KernelRegistry, functions: FunctionExecutors
) -> Executor:
    return DataflowExecutor(graph, kernels)


# The keys are values of `ConfigProto.experimental.executor_type` (TF: executor_factory.h). The
# single-threaded executor refuses graphs with v1 loops. DATAFLOW runs branches in
# parallel; TensorFlow has no such executor type.
EXECUTOR_FACTORIES: dict[str, ExecutorFactory] = {
    "": build_executor,
    "DEFAULT": build_executor,
    "SINGLE_THREADED_EXECUTOR": _build_step_plan,
    "DATAFLOW": _build_dataflow,
}


def executor_factory(executor_type: str) -> ExecutorFactory:
    """Return the factory of an executor type; raise NotFoundError if the type is unknown."""
    try:
        return EXECUTOR_FACTORIES[executor_type]
    except KeyError:
        known = ", ".join(filter(None, EXECUTOR_FACTORIES))
        raise NotFoundError(
            f"No executor factory registered for the given executor type: {executor_type} "
            f"Registered executor types: {known}"
        ) from None


class FunctionExecutors(FunctionRunner):
    """Runs the functions of one library; each is compiled when it is first called.

    Guarantees: thread-safe. Compiled functions are kept in the library, so all sessions that share
    the library use them. If two threads compile a function at the same time, one result is kept.
    """

    def __init__(
        self, library: FunctionLibrary, kernels: KernelRegistry, optimizer: Optimizer
    ) -> None:
        self._library = library
        self._kernels = kernels
        self._optimizer = optimizer
        self._waits: dict[tuple[str, str], bool] = {}

    def call(
        self, step: Step, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> list[TensorValue]:
        """Run a function in the calling thread and return its outputs.

        Raises InvalidArgumentError if the number of arguments is wrong or calls nest deeper than
        `_MAX_CALL_DEPTH`.
        """
        body = self._compiled(function, arguments)
        with _depth:
            return body.executor.run(step, arguments)

    def start(
        self, step: Step, function: NameAttrList, arguments: Sequence[TensorValue]
    ) -> Deferred:
        """Start a function and return a Deferred of its outputs.

        The thread that runs the last kernel of the function completes the Deferred.
        """
        deferred = Deferred()

        def done(values: list[TensorValue] | None, error: OpError | None) -> None:
            if error is not None:
                deferred.set_error(error)
            else:
                deferred.set_value(values)

        self._compiled(function, arguments).executor.run_async(step, arguments, done)
        return deferred

    def _compiled(self, function: NameAttrList, arguments: Sequence[TensorValue]) -> _CompiledBody:
        key = self._library.key(function)
        body: _CompiledBody | None = self._library.compiled.get(key)
        if body is None:
            body = self._library.compiled[key] = self._compile(function)
        if len(arguments) != body.argument_count:
            raise InvalidArgumentError(
                f"Function {function.name}: Function takes {body.argument_count} argument(s) but "
                f"{len(arguments)} argument(s) were passed"
            )
        return body

    def _compile(self, function: NameAttrList) -> _CompiledBody:
        body = function_body(self._library, function)
        graph = _body_graph(body)
        self.transform(graph)
        return _CompiledBody(build_executor(graph, self._kernels, self), len(body.arguments))

    def transform(self, graph: StepGraph) -> None:
        """Inline the function calls of `graph` and optimise it; `graph` itself is changed."""
        self._optimizer.run(graph, self._library, self._kernels)

    def split(self, graph: StepGraph) -> VariableOnlyPart | None:
        """Return `graph` with its variable-only part apart, or None if it is not to be divided.

        A kernel that is not built in may have effects that its op does not show.
        """
        if not (self._optimizer.is_on and self._kernels.is_built_in):
            return None
        return split_variable_only_part(graph, self._library, self._kernels)

    @property
    def max_folded_bytes(self) -> int:
        """The most bytes that the optimiser may keep instead of computing them in every step."""
        return self._optimizer.max_folded_bytes

    def definitions(self, names: Iterable[str]) -> pb.FunctionDefLibrary:
        """Return the functions called `names` in the library, and all functions that they call."""
        return self._library.reachable(names)

    def of_library(self, library: pb.FunctionDefLibrary) -> FunctionExecutors:
        """Return a runner for the functions of `library` with the same kernels and optimiser."""
        return FunctionExecutors(FunctionLibrary().merged(library), self._kernels, self._optimizer)

    def may_wait(self, function: NameAttrList) -> bool:
        """Return whether the function, or a function that it calls, has asynchronous kernels."""
        key = self._library.key(function)
        known = self._waits.get(key)
        if known is None:
            known = self._waits[key] = self._reaches_one_that_waits(function)
        return known

    def needs_dataflow(self, node: Node) -> bool:
        """Return whether a graph that contains `node` needs the dataflow executor."""
        return (
            node.op in V1_CONTROL_FLOW
            or self._is_asynchronous(node)
            or any(self.may_wait(function) for function in self._called_by(node))
        )

    def _reaches_one_that_waits(self, function: NameAttrList) -> bool:
        """Return what `may_wait` returns, without its cache; `function` may be recursive."""
        seen = set()
        pending = [function]
        while pending:
            function = pending.pop()
            key = self._library.key(function)
            if key in seen or self._waits.get(key) is False:
                continue
            seen.add(key)
            for node in function_body(self._library, function).nodes:
                if self._is_asynchronous(node):
                    return True
                pending += self._called_by(node)
        return False

    def _is_asynchronous(self, node: Node) -> bool:
        is_call = called_function(node, self._library) is not None
        return not is_call and any(
            kernel.asynchronous for kernel in self._kernels.kernels_of(node.op)
        )

    def _called_by(self, node: Node) -> list[NameAttrList]:
        """Return the functions that `node` calls if it is a call or its op is in `_FUNCTIONAL`."""
        called = called_function(node, self._library)
        if called is not None:
            return [called]
        return _functions_of(node) if node.op in _FUNCTIONAL else []


def _functions_of(node: Node) -> list[NameAttrList]:
    found: list[NameAttrList] = []
    for name, kind in node.info.attr_types.items():
        if kind == "func":
            found.append(node.attr(name))
        elif kind == "list(func)":
            found += node.attr(name)
    return found


class _CompiledBody:
    """The executor of a function's body, and the number of the function's arguments."""

    __slots__ = ("argument_count", "bytes_held", "executor")

    def __init__(self, executor: Executor, argument_count: int) -> None:
        self.executor = executor
        self.bytes_held = executor.bytes_held
        self.argument_count = argument_count


def compiled_bytes(library: FunctionLibrary) -> int:
    """Return the bytes of the compiled functions of `library`, estimated from their nodes."""
    return sum(body.bytes_held for body in list(library.compiled.values()))


def _body_graph(body: FunctionBody) -> StepGraph:
    """Return a copy of the body as the graph of a step.

    The function's name is put before node names, because kernels keep state under the node's name.
    """
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
    """Counts the nested function calls of each thread, and raises if there are too many."""

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
