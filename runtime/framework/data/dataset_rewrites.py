"""Traversal of pipelines and their options, and a check that one of TensorFlow's rewrites makes.

Most of TensorFlow's rewrites do not change the elements of a pipeline. They are not implemented.

TF: tensorflow/core/framework/dataset_options.proto, tensorflow/core/data/rewrite_utils.cc,
tensorflow/core/grappler/optimizers/data/shuffle_and_repeat_fusion.cc
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.framework.attr_value import raw_bytes
from runtime.framework.data.dataset import Dataset, scalar_argument
from runtime.framework.tensor_value import TensorValue

SHUFFLES = ("ShuffleDataset", "ShuffleDatasetV2", "ShuffleDatasetV3")
# Ops whose inputs are components of elements. A dataset among these inputs is such a component and
# not part of the pipeline.
_ELEMENT_SOURCES = ("ListDataset", "TensorDataset", "TensorSliceDataset")
# Datasets that TensorFlow cannot convert to a graph. It does not rewrite pipelines with such a
# dataset.
_WITHOUT_GRAPH = (
    "ExperimentalNonSerializableDataset", "GeneratorDataset", "NonSerializableDataset",
)  # fmt: skip


def op_of(dataset: Dataset) -> str:
    """Return the op of the node that created a dataset, or "" if no node created it."""
    return "" if dataset.origin is None else dataset.origin.node.op


def dataset_in(value: TensorValue) -> Dataset | None:
    """Return the dataset in the value of an input, or None if the value is not a dataset."""
    if isinstance(value, np.ndarray) and value.dtype == object and not value.ndim:
        value = value.item()
    return value if isinstance(value, Dataset) else None


def inputs_of(dataset: Dataset) -> list[Dataset]:
    """Return the input datasets of a dataset, in the order of its node's inputs."""
    if dataset.origin is None or dataset.origin.node.op in _ELEMENT_SOURCES:
        return []
    found = map(dataset_in, dataset.origin.inputs)
    return [each for each in found if each is not None]


def pipeline(dataset: Dataset) -> Iterator[Dataset]:
    """Yield a dataset and its direct and indirect inputs, each dataset before its inputs.

    Datasets that functions create are not included.
    """
    pending = [dataset]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(inputs_of(current))


def is_rewritable(dataset: Dataset) -> bool:
    """Return whether TensorFlow can convert the pipeline to a graph, as every rewrite requires."""
    return not any(op_of(each) in _WITHOUT_GRAPH for each in pipeline(dataset))


def serialized_options(dataset: Dataset) -> bytes:
    """Return the merged options of all datasets of a pipeline, as a serialized Options message.

    Concatenated serialized messages parse as their merge, in which later messages take precedence.
    Here the later messages are closer to the end of the pipeline.
    """
    merged = b"".join(map(serialized_options, inputs_of(dataset)))
    if dataset.origin is None or dataset.origin.node.op != "OptionsDataset":
        return merged
    return merged + raw_bytes(dataset.origin.node.attr("serialized_options"))


def options_of(dataset: Dataset) -> pb.Options:
    """Return the merged options of all datasets of a pipeline."""
    return pb.Options.FromString(serialized_options(dataset))


def check_repeated_shuffles(dataset: Dataset) -> None:
    """Raise InvalidArgumentError if the count of a repeated shuffle is 0 or less than −1.

    Unless the options disable it, TensorFlow fuses the shuffle and the repeat into one dataset,
    which does not accept such a count.
    """
    counts = [
        scalar_argument(each.origin.inputs[1], "count")
        for each in pipeline(dataset)
        if each.origin is not None
        and op_of(each) == "RepeatDataset"
        and op_of(inputs_of(each)[0]) in SHUFFLES
    ]
    if all(count > 0 or count == -1 for count in counts) or not is_rewritable(dataset):
        return
    options = options_of(dataset).optimization_options
    is_default = options.apply_default_optimizations or not options.HasField(
        "apply_default_optimizations"
    )
    is_chosen = options.HasField("shuffle_and_repeat_fusion")
    if options.shuffle_and_repeat_fusion if is_chosen else is_default:
        raise InvalidArgumentError("count must be greater than zero or equal to -1.")
