"""Conversion of datasets to graphs and back; fingerprints of pipelines.

TF: tensorflow/core/kernels/data/dataset_ops.cc (DatasetToGraph, DatasetFromGraph, Fingerprint)
"""

from __future__ import annotations

import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.foundation.errors import FailedPreconditionError, InvalidArgumentError
from runtime.framework.attr_value import NameAttrList
from runtime.framework.data.dataset import (
    Dataset,
    DatasetIterator,
    Element,
    State,
    UnaryDataset,
    as_dataset,
)
from runtime.framework.data.dataset_graph import (
    DatasetGraphBuilder,
    as_function,
    check_no_state,
    graph_hash,
)
from runtime.framework.op_kernel import KernelDef, OpKernelContext, StepState
from runtime.framework.string_tensor import scalar_string, string_tensor

FAIL_ON_STATE = 2  # a value of `external_state_policy`; 0 means warn, 1 means ignore
_FUNCTION = "dataset_of_graph"


def dataset_to_graph(
    context: OpKernelContext,
    dataset: Dataset,
    *,
    allow_stateful: bool,
    strip_device_assignment: bool,
) -> np.ndarray:
    """DatasetToGraph: return the graph that creates a dataset, as a serialized GraphDef.

    Raises FailedPreconditionError if a function contains a stateful op and `allow_stateful` is
    false.
    """
    return _graph(context, dataset, not allow_stateful, strip_device_assignment)


def dataset_to_graph_v2(
    context: OpKernelContext,
    dataset: Dataset,
    *,
    external_state_policy: int,
    strip_device_assignment: bool,
) -> np.ndarray:
    """DatasetToGraphV2: return the graph that creates a dataset, as a serialized GraphDef.

    Raises FailedPreconditionError if a function contains a stateful op and `external_state_policy`
    is FAIL_ON_STATE.
    """
    return _graph(context, dataset, external_state_policy == FAIL_ON_STATE, strip_device_assignment)


def _graph(
    context: OpKernelContext, dataset: Dataset, fails_on_state: bool, strips_devices: bool
) -> np.ndarray:
    if fails_on_state:
        try:
            check_no_state(context, as_dataset(dataset))
        except FailedPreconditionError as error:
            raise FailedPreconditionError(
                f"Failed to serialize the input pipeline graph: {error.message_without_node}"
            ) from None
    graph = DatasetGraphBuilder(context).build(as_dataset(dataset))
    if strips_devices:
        for function in graph.library.function:
            for node in function.node_def:
                node.device = ""
    return string_tensor([graph.SerializeToString(deterministic=True)], ())


def dataset_fingerprint(context: OpKernelContext, dataset: Dataset) -> np.ndarray:
    """DatasetFingerprint: return a 64-bit hash of the pipeline's graph."""
    graph = DatasetGraphBuilder(context).build(as_dataset(dataset))
    return np.array(graph_hash(graph), np.uint64)


def dataset_from_graph(context: OpKernelContext, graph_def: np.ndarray) -> Dataset:
    """DatasetFromGraph: return the dataset that the serialized GraphDef `graph_def` creates."""
    try:
        graph = pb.GraphDef.FromString(scalar_string(graph_def))
    except DecodeError:
        raise InvalidArgumentError("Could not parse the graph of a dataset") from None
    return dataset_of(context, graph)


def dataset_of(context: OpKernelContext, graph: pb.GraphDef) -> Dataset:
    """Return the dataset that a graph creates.

    The functions of the dataset are looked up in the library of `graph`.
    """
    library = graph.library
    library.function.append(as_function(graph, _FUNCTION))
    runner = context.step.function_runner(library)
    outputs = context.step.with_functions(runner).call_function(NameAttrList(_FUNCTION), ())
    return GraphDataset(as_dataset(outputs[0]), runner)


class GraphDataset(UnaryDataset):
    """Wraps a dataset whose functions are in the library of its own graph, not of the caller's."""

    kind = "FromGraph"

    def __init__(self, dataset: Dataset, runner: object) -> None:
        super().__init__(dataset)
        self.origin = dataset.origin
        self._runner = runner

    def with_input(self, dataset: Dataset) -> GraphDataset:
        """Return a wrapper of `dataset` that has the same functions.

        Returns `self` if it wraps `dataset` already.
        """
        return self if dataset is self.input else GraphDataset(dataset, self._runner)

    def step_for(self, step: StepState) -> StepState:
        """Return `step` with the functions of the dataset's graph."""
        return step.with_functions(self._runner)

    def context_for(self, context: OpKernelContext) -> OpKernelContext:
        """Return `context` with the functions of the dataset's graph."""
        return OpKernelContext(context.node, self.step_for(context.step))

    @property
    def has_random_access(self) -> bool:
        """Whether the wrapped dataset has random access."""
        return self.input.has_random_access

    def element_at(self, context: OpKernelContext, index: int) -> Element:
        """Return the wrapped dataset's element at `index`."""
        return self.input.element_at(self.context_for(context), index)

    def iterate(self, context: OpKernelContext, prefix: str = "Iterator::Root") -> DatasetIterator:
        """Return a new iterator named `prefix`: the wrapper does not appear in iterator names."""
        return self.iterator(context, prefix)

    def iterator(self, context: OpKernelContext, prefix: str) -> DatasetIterator:
        """Return an iterator over the wrapped dataset."""
        return _GraphIterator(self, context, prefix)


class _GraphIterator(DatasetIterator):
    """Wraps an iterator over the wrapped dataset, whose state it saves unchanged."""

    def __init__(self, dataset: GraphDataset, context: OpKernelContext, prefix: str) -> None:
        self._dataset = dataset
        self._inner = dataset.input.iterate(dataset.context_for(context), prefix)

    def get_next(self, context: OpKernelContext) -> Element | None:
        return self._inner.get_next(self._dataset.context_for(context))

    def save(self) -> State:
        return self._inner.save()

    def restore(self, context: OpKernelContext, saved: State) -> None:
        self._inner.restore(self._dataset.context_for(context), saved)


KERNELS = (
    KernelDef("DatasetFingerprint", dataset_fingerprint),
    KernelDef("DatasetFromGraph", dataset_from_graph),
    KernelDef("DatasetToGraph", dataset_to_graph),
    KernelDef("DatasetToGraphV2", dataset_to_graph_v2),
)
