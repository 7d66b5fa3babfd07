"""MetadataRequest: fills the RunMetadata of a step with what its options request.

| field | filled if |
| --- | --- |
| `step_stats` | `RunOptions.trace_level` is not NO_TRACE |
| `partition_graphs` | `RunOptions.output_partition_graphs` is true |
| `cost_graph` | `GraphOptions.build_cost_model` is n > 0, for every n-th step of an executor |
| `session_metadata` | the session's configuration has it |

TF: tensorflow/core/common_runtime/direct_session.cc (RunInternal), costmodel_manager.h
"""

from __future__ import annotations

import protos as pb
from runtime.executors.partitioned import PartitionedExecutor
from runtime.executors.step import Executor
from runtime.executors.step_stats import StepStatsCollector
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework import attr_value
from runtime.graph.node import Node
from runtime.graph.passes.pruning import StepGraph

_NO_OPTIONS = pb.RunOptions()


class MetadataRequest:
    """The report of one step; `collector` is None if no node needs to be measured."""

    def __init__(
        self,
        metadata: pb.RunMetadata | None,
        options: pb.RunOptions | None,
        config: pb.ConfigProto,
        device: str,
        executor: Executor,
    ) -> None:
        options = options or _NO_OPTIONS
        self._metadata = metadata
        self._config = config
        self._device = device
        self._executor = executor
        self._wants_stats = options.trace_level != pb.RunOptions.NO_TRACE
        self._wants_graphs = options.output_partition_graphs
        self._wants_costs = self._is_cost_step()
        if self._wants_graphs and config.experimental.disable_output_partition_graphs:
            raise InvalidArgumentError(
                "RunOptions.output_partition_graphs() is not supported when "
                "disable_output_partition_graphs is true."
            )
        is_measured = metadata is not None and (self._wants_stats or self._wants_costs)
        self.collector = StepStatsCollector(device) if is_measured else None

    def _is_cost_step(self) -> bool:
        every = self._config.graph_options.build_cost_model
        if every <= 0:
            return False
        step = next(self._executor.steps) - self._config.graph_options.build_cost_model_after
        return step >= 0 and (step + 1) % every == 0

    def fill(self) -> None:
        """Write the report into the RunMetadata message. Must be called after the step."""
        metadata = self._metadata
        if metadata is None:
            return
        graph = self._executor.graph
        if self.collector is not None and self._wants_stats:
            self._add_nodes_without_kernel(self.collector, graph)
            metadata.step_stats.CopyFrom(self.collector.to_proto())
        if self.collector is not None and self._wants_costs:
            metadata.cost_graph.CopyFrom(_cost_graph(graph, self.collector, self._device))
        if self._wants_graphs:
            metadata.partition_graphs.extend(
                partition_graph(each, device) for device, each in self._partitions()
            )
        if self._config.experimental.HasField("session_metadata"):
            metadata.session_metadata.CopyFrom(self._config.experimental.session_metadata)

    def _partitions(self) -> list[tuple[str, StepGraph]]:
        if isinstance(self._executor, PartitionedExecutor):
            return [(each.device, each.graph) for each in self._executor.partitions]
        return [(self._device, self._executor.graph)]

    def _add_nodes_without_kernel(self, collector: StepStatsCollector, graph: StepGraph) -> None:
        """Add nodes that TensorFlow lists although no kernel ran: constants, aliases and feeds.

        They and `_SOURCE` get the time at which the step began. The `_Retval` nodes of the fetches
        get the time at which the step ended.
        """
        seen = collector.node_names
        begun, now = collector.begun, collector.now_nanos()
        collector.add("", "_SOURCE", "NoOp", begun, (), 0)
        for node in graph.nodes:
            if node.name not in seen:
                collector.add(node.device, node.name, node.op, begun, (), 0)
        for name in graph.retvals:
            collector.add("", name, "_Retval", now, (), 0)


def partition_graph(graph: StepGraph, device: str) -> pb.GraphDef:
    """Return `graph` as a GraphDef with `_Arg` nodes for feeds and `_Retval` nodes for fetches."""
    graph_def = pb.GraphDef(versions=pb.VersionDef(producer=1))
    for node in graph.nodes:
        node_def = node.to_node_def()
        node_def.device = node_def.device or device
        if node.op == "_Arg":
            _set_attrs(node_def, node)
        graph_def.node.append(node_def)
    for position, (node, index) in enumerate(graph.fetches):
        retval = graph_def.node.add(
            name=graph.retvals[position],
            op="_Retval",
            device=device,
            input=[node.name if index == 0 else f"{node.name}:{index}"],
        )
        retval.attr["T"].CopyFrom(attr_value.to_proto(node.output_types[index]))
        retval.attr["index"].i = position
    return graph_def


def _set_attrs(node_def: pb.NodeDef, node: Node) -> None:
    for name in ("T", "index"):
        node_def.attr[name].CopyFrom(attr_value.to_proto(node.attr(name)))


def _cost_graph(graph: StepGraph, collector: StepStatsCollector, device: str) -> pb.CostGraphDef:
    """Return a CostGraphDef that has the measured times and output sizes of the nodes."""
    ids = {node: number for number, node in enumerate(graph.nodes)}
    measured = collector.by_node()
    fetched = {node for node, _ in graph.fetches}
    costs = pb.CostGraphDef()
    for node, number in ids.items():
        entry = costs.node.add(
            name=node.name, device=node.device or device, id=number, is_final=node in fetched
        )
        for source, index in node.inputs:
            entry.input_info.add(preceding_node=ids[source], preceding_port=index)
        entry.control_input.extend(ids[control] for control in node.control_inputs)
        stats = measured.get(node.name)
        for slot, data_type in enumerate(node.output_types):
            output = entry.output_info.add(dtype=int(data_type), alias_input_port=-1)
            if stats is not None and slot < len(stats.output):
                description = stats.output[slot].tensor_description
                output.shape.CopyFrom(description.shape)
                output.size = description.allocation_description.requested_bytes
        if stats is not None:
            entry.compute_cost = entry.compute_time = stats.op_end_rel_micros
    return costs
