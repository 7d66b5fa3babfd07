"""What rewrites of pipelines look at, and what TensorFlow's own refuse before anything runs.

Most of TensorFlow's rewrites change no element, and are not done here.

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
# Datasets may be their elements, which are no part of the pipeline.
_OF_TENSORS = ("ListDataset", "TensorDataset", "TensorSliceDataset")
# TensorFlow leaves a pipeline as it is when one of its datasets has no graph.
_WITHOUT_GRAPH = (
    "ExperimentalNonSerializableDataset", "GeneratorDataset", "NonSerializableDataset",
)  # fmt: skip


def op_of(dataset: Dataset) -> str:
    """The op that made a dataset; empty for one that no node made."""
    return "" if dataset.origin is None else dataset.origin.node.op


def dataset_in(value: TensorValue) -> Dataset | None:
    """The dataset that an input is, if it is one."""
    if isinstance(value, np.ndarray) and value.dtype == object and not value.ndim:
        value = value.item()
    return value if isinstance(value, Dataset) else None


def inputs_of(dataset: Dataset) -> list[Dataset]:
    """The datasets that a dataset is made of, in the order of its inputs."""
    if dataset.origin is None or dataset.origin.node.op in _OF_TENSORS:
        return []
    found = map(dataset_in, dataset.origin.inputs)
    return [each for each in found if each is not None]


def pipeline(dataset: Dataset) -> Iterator[Dataset]:
    """A dataset and all that it is made of, functions apart; from its end to its sources."""
    pending = [dataset]
    while pending:
        current = pending.pop()
        yield current
        pending += reversed(inputs_of(current))


def is_rewritable(dataset: Dataset) -> bool:
    """Whether TensorFlow can write the pipeline down, as every rewrite does."""
    return not any(op_of(each) in _WITHOUT_GRAPH for each in pipeline(dataset))


def serialized_options(dataset: Dataset) -> bytes:
    """Those of all datasets of a pipeline, a serialized Options message.

    Messages one after another are their merger: what comes later in the pipeline counts.
    """
    merged = b"".join(map(serialized_options, inputs_of(dataset)))
    if dataset.origin is None or dataset.origin.node.op != "OptionsDataset":
        return merged
    return merged + raw_bytes(dataset.origin.node.attr("serialized_options"))


def options_of(dataset: Dataset) -> pb.Options:
    """The options that hold for a pipeline."""
    return pb.Options.FromString(serialized_options(dataset))


def check_repeated_shuffles(dataset: Dataset) -> None:
    """InvalidArgumentError for a shuffle that is repeated 0 or fewer than −1 times.

    TensorFlow makes one dataset of the two, which takes no such count, unless the options say no.
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
