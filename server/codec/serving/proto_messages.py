"""Read the tensors of TensorFlow Serving's gRPC requests, and write its responses.

All functions may be called on any thread.

TF: tensorflow_serving/apis/{predict,classification,regression,session_service}.proto,
    tensorflow_serving/servables/tensorflow/predict_util.cc
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.api import DataType, dtypes, tensor_from_proto
from runtime.errors import InvalidArgumentError
from server.codec.serving.typed_tensor import tensor_parts
from server.codec.session.large_responses import Part, message_field
from server.codec.session.proto_steps import check_claims

_OUTPUTS = pb.serving.PredictResponse.DESCRIPTOR.fields_by_name["outputs"].number
_KEY, _VALUE = 1, 2  # the fields of an entry of a map
_RUN_TENSOR = pb.serving.SessionRunResponse.DESCRIPTOR.fields_by_name["tensor"].number
_NAME = pb.NamedTensorProto.DESCRIPTOR.fields_by_name["name"].number
_NAMED_TENSOR = pb.NamedTensorProto.DESCRIPTOR.fields_by_name["tensor"].number


def read_tensors(protos: Mapping[str, pb.TensorProto], max_bytes: int) -> dict[str, np.ndarray]:
    """Decode the tensors of a request by alias or name.

    Raises InvalidArgumentError if one cannot be decoded, and ResourceExhaustedError if one needs
    more than `max_bytes`, or those that repeat their values need more together.
    """
    check_claims(list(protos.values()), max_bytes)
    arrays: dict[str, np.ndarray] = {}
    for alias, proto in protos.items():
        try:
            arrays[alias] = tensor_from_proto(proto, max_bytes)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"tensor parsing error: {alias}: {error.message}") from error
    return arrays


def input_examples(message: pb.serving.Input) -> np.ndarray:
    """Return the serialized examples of an Input as a string tensor `[number of examples]`.

    Raises InvalidArgumentError if there are no examples.
    """
    context = b""
    examples = message.example_list.examples
    if message.WhichOneof("kind") == "example_list_with_context":
        context = message.example_list_with_context.context.SerializeToString()
        examples = message.example_list_with_context.examples
    if not examples:
        raise InvalidArgumentError("Input is empty.")
    tensor = np.empty(len(examples), object)
    tensor[:] = [context + example.SerializeToString() for example in examples]
    return tensor


def write_predict(
    spec: pb.serving.ModelSpec,
    outputs: Mapping[str, np.ndarray],
    types: Mapping[str, DataType],
    as_content: bool,
) -> bytes:
    """Write a serialized PredictResponse; `types` are the element types of the outputs."""
    parts: list[Part] = []
    for alias, array in outputs.items():
        tensor = tensor_parts(array, types[alias], as_content=as_content)
        entry = [*message_field(_KEY, [alias.encode()]), *message_field(_VALUE, tensor)]
        parts += message_field(_OUTPUTS, entry)
    parts.append(pb.serving.PredictResponse(model_spec=spec).SerializeToString())
    return b"".join(parts)


def write_session_run(
    spec: pb.serving.ModelSpec, names: Iterable[str], values: Sequence[Any], as_content: bool
) -> bytes:
    """Write a serialized SessionRunResponse with the tensors in the order of the fetches.

    Raises UnimplementedError if a value is a resource or a variant.
    """
    parts: list[Part] = []
    for name, value in zip(names, values, strict=True):
        array = np.asarray(value)
        tensor = tensor_parts(array, dtypes.from_numpy(array.dtype), as_content=as_content)
        named = [*message_field(_NAME, [name.encode()]), *message_field(_NAMED_TENSOR, tensor)]
        parts += message_field(_RUN_TENSOR, named)
    parts.append(pb.serving.SessionRunResponse(model_spec=spec).SerializeToString())
    return b"".join(parts)


def classification_result(
    labels: np.ndarray, scores: np.ndarray
) -> pb.serving.ClassificationResult:
    """Return the message of labels (bytes) and scores (float32), both `[examples, classes]`.

    Raises InvalidArgumentError if a label is not UTF-8, which the field requires.
    """
    result = pb.serving.ClassificationResult()
    for names, values in zip(labels.tolist(), scores.tolist(), strict=True):
        classes = result.classifications.add().classes
        for name, value in zip(names, values, strict=True):
            try:
                classes.add(label=name, score=value)
            except (UnicodeDecodeError, ValueError) as error:
                raise InvalidArgumentError(f"The label {name!r:.80} is not UTF-8") from error
    return result


def regression_result(values: np.ndarray) -> pb.serving.RegressionResult:
    """Return the message of float32 values `[number of examples]`."""
    return pb.serving.RegressionResult(
        regressions=[pb.serving.Regression(value=value) for value in values.tolist()]
    )
