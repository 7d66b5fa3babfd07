"""Convert the JSON examples of classify and regress requests to serialized tf.Example messages.

TF: tensorflow_serving/util/json_tensor.cc (FillClassifyRegressRequestFromJson),
    tensorflow_serving/servables/tensorflow/util.cc (InputToSerializedExampleTensor)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import protos as pb
from runtime.errors import InvalidArgumentError
from server.codec.large.large_values import LISTS, LargeList, LargeText
from server.codec.serving.pretty_json import debug_string
from server.codec.serving.requests import Document
from server.codec.serving.tensor_reader import decode_base64, is_base64, text_bytes, type_name

_INT64_MAX = (1 << 63) - 1
# Maps the field of tf.Feature that holds a list of elements to its name in error messages.
_KIND_WORD = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64"}


def examples_tensor(document: Document) -> np.ndarray:
    """Return the serialized examples of a body as a string tensor `[number of examples]`.

    If the body has a `context`, its serialized form is put before each example, because parsing
    then merges the features of the two messages. Raises InvalidArgumentError with TensorFlow
    Serving's text.
    """
    members = document.plain_members()
    context = b""
    if "context" in members:
        context = _example(members["context"]).SerializeToString()
    examples = _checked_examples(members)
    is_large = isinstance(examples, LargeList)
    tensor = np.empty(examples.size if is_large else len(examples), object)
    for first, values in examples.rows() if is_large else [(0, examples)]:
        serialized = [context + _example(value).SerializeToString() for value in values]
        tensor[first : first + len(values)] = serialized
    return tensor


def _checked_examples(members: dict[str, Any]) -> Any:
    """Return the examples, a list or a LargeList that is not empty."""
    if "examples" not in members:
        what = "When method is classify, key 'examples' is expected and was not found"
    elif not isinstance(members["examples"], LISTS):
        what = "Expecting 'examples' value to be an list/array"
    else:
        examples = members["examples"]
        if examples.size if isinstance(examples, LargeList) else examples:
            return examples
        what = "'examples' value is an empty array"
    raise InvalidArgumentError(f"JSON Value: {debug_string(members)} {what}")


def _example(value: Any) -> pb.Example:
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"Example must be JSON object but got JSON {type_name(value)}")
    example = pb.Example()
    for name, content in value.items():
        try:
            feature = example.features.feature[name]
        except UnicodeEncodeError:
            raise InvalidArgumentError(f"The name of a feature is not UTF-8: {name!r}") from None
        feature.SetInParent()
        for element in _elements(content):
            _add_element(element, name, feature)
    return example


def _elements(content: Any) -> Iterator[Any]:
    if isinstance(content, LargeList):
        for _, elements in content.rows():
            yield from elements
    elif isinstance(content, list):
        yield from content
    else:
        yield content


def _add_element(element: Any, name: str, feature: pb.Feature) -> None:
    kind, value = _kind_and_value(element, name)
    present = feature.WhichOneof("kind")
    if present not in (None, kind):
        raise InvalidArgumentError(
            f"Unexpected element type in feature: {name} expecting type: {_KIND_WORD[present]}"
        )
    if kind == "int64_list" and value > _INT64_MAX:
        raise InvalidArgumentError(
            f"Feature: {name} has uint64_t element. Only int64_t is supported."
        )
    getattr(feature, kind).value.append(value)


def _kind_and_value(element: Any, name: str) -> tuple[str, Any]:
    """Return the field of tf.Feature for a JSON value, and the value to append to that field."""
    if isinstance(element, bool | int):
        return "int64_list", int(element)
    if isinstance(element, float):
        return "float_list", element
    if isinstance(element, LargeText):
        return "bytes_list", element.content()
    if isinstance(element, str):
        return "bytes_list", text_bytes(element)
    if is_base64(element):
        return "bytes_list", decode_base64(element)
    raise InvalidArgumentError(
        f"Feature: {name} has element with unexpected JSON type: {type_name(element)}"
    )
