"""StepCompiler: compiles steps with a session's devices, kernels, optimiser and executor type.

Guarantees: a StepCompiler is immutable, so any thread may use it.

TF: tensorflow/core/common_runtime/direct_session.cc (CreateExecutors, CreateGraphs)
"""

from __future__ import annotations

from collections.abc import Sequence

import protos as pb
from runtime.devices.device import Device
from runtime.executors.clustered import NO_CLUSTERS, ClusterOptions, clustering
from runtime.executors.compiler import FunctionExecutors, compile_step, executor_factory
from runtime.executors.dataflow import DataflowExecutor
from runtime.executors.portable_step import may_keep_state, nodes_of_step, portable_step
from runtime.executors.step import Executor
from runtime.framework.kernel_registry import KernelRegistry
from runtime.graph.graph import Graph
from runtime.graph.node import Node
from runtime.graph.passes.optimizer import Optimizer
from runtime.graph.passes.partition import assign_devices, can_partition
from runtime.graph.passes.placer import log_device_mapping, log_placement, place
from runtime.graph.passes.pruning import StepGraph


class StepCompiler:
    """Places nodes on devices and compiles steps, according to one session's configuration.

    The constructor raises NotFoundError if the executor type is unknown, and InvalidArgumentError
    if `clusters` has a value that `SessionOptions` does not have, or values that don't go together.
    """

    def __init__(
        self,
        config: pb.ConfigProto,
        devices: Sequence[Device],
        kernels: KernelRegistry,
        clusters: ClusterOptions = NO_CLUSTERS,
    ) -> None:
        self._config = config
        self._devices = list(devices)
        self._names = {device.name for device in devices}
        self._kernels = kernels
        self._optimizer = Optimizer.from_config(config)
        self._build = executor_factory(config.experimental.executor_type)
        self._clusters, self._engine = clusters.mode(config), clusters.choice
        if config.log_device_placement:
            log_device_mapping(self._devices)

    def functions(self, graph: Graph) -> FunctionExecutors:
        """Return the runner of the functions in the library of `graph`."""
        return FunctionExecutors(graph.library, self._kernels, self._optimizer)

    def place(self, nodes: Sequence[Node], graph: Graph) -> None:
        """Check and assign the devices of new nodes; raise what `placer.place` raises.

        If `place_pruned_graph` is set, nodes get their devices when a step is compiled instead.
        """
        if not self._config.graph_options.place_pruned_graph:
            place(nodes, graph.nodes, self._devices, self._config.allow_soft_placement)
        if self._config.log_device_placement:
            log_placement(nodes, self._devices)

    def compile(
        self, graph: Graph, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> Executor:
        """Return the executor of a step; raise what `compile_step` raises."""
        functions = self.functions(graph)
        executor = compile_step(
            graph,
            self._kernels,
            feeds,
            fetches,
            targets,
            self._build,
            functions,
            self._place_step,
            add_clusters=clustering(self._clusters, self._engine, graph.library),
        )
        executor.keeps_feeds = may_keep_state(executor.graph.nodes, graph)
        if self._kernels.is_built_in:
            named = nodes_of_step(graph, feeds, fetches, targets)
            executor.set_portable_factory(
                lambda: portable_step(named, self._config, feeds, fetches, targets)
            )
        return executor

    def compile_in_parts(
        self, graph: Graph, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
    ) -> DataflowExecutor:
        """Return the executor of a partial run, which is never split over several devices."""

        def check_devices(step_graph: StepGraph) -> None:
            self._place_step(step_graph)

        executor = compile_step(
            graph,
            self._kernels,
            feeds,
            fetches,
            targets,
            lambda step_graph, kernels, _: DataflowExecutor(step_graph, kernels),
            self.functions(graph),
            check_devices,
            is_divisible=False,
        )
        assert isinstance(executor, DataflowExecutor)
        return executor

    def _place_step(self, step_graph: StepGraph) -> str | None:
        """Assign devices; return the client device if the step runs on several, otherwise None."""
        nodes = step_graph.nodes
        if not self._config.graph_options.place_pruned_graph:
            # `place` has checked the nodes of the graph, but not the nodes of inlined functions.
            nodes = [each for each in nodes if each.device and each.device not in self._names]
        if nodes:
            known = {node.name: node for node in step_graph.nodes}
            place(nodes, known, self._devices, self._config.allow_soft_placement)
        if len(self._devices) == 1 or not can_partition(step_graph):
            return None
        client_device = self._devices[0].name
        return client_device if assign_devices(step_graph, client_device) else None
