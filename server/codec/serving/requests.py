"""Read TensorFlow Serving's JSON requests, and the tensors of predict in row and columnar form.

A body is read in three stages, in the order in which TensorFlow Serving reports faults: the
document (`parse_document`), the name of the signature (`signature_name`) and, once the caller has
looked up the signature, the tensors (`predict_inputs`).

TF: tensorflow_serving/util/json_tensor.cc
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, Protocol

import numpy as np
import orjson

from runtime.api import DataType, shape_text
from runtime.errors import InvalidArgumentError, OpError
from server.codec.json_parts import LARGE_BODY_BYTES
from server.codec.large.large_body import LargeBody
from server.codec.large.large_values import LISTS, DeepListError, LargeList, LargeText
from server.codec.large.number_array import NumberArray, stacked
from server.codec.large.number_slices import RAPIDJSON_WORDS
from server.codec.large.sliced_body import UnusualJson, read_sliced
from server.codec.serving.pretty_json import debug_string
from server.codec.serving.serving_dialect import SERVING_JSON
from server.codec.serving.tensor_reader import TensorReader, check_rank, is_base64
from server.codec.serving.tolerant_json import parse_tolerant

DEFAULT_SIGNATURE = "serving_default"
_TENSOR_KEYS = ("instances", "inputs")
_TEXT_KEYS = ("signature_name", "priority")
_TOLERANT = UnusualJson(parse_tolerant, RAPIDJSON_WORDS)
_EXACT_READER, _WRAPPING_READER = TensorReader(exact_range=True), TensorReader(exact_range=False)


class PredictFormat(enum.Enum):
    """The form of a predict request; the response has the same form."""

    ROW = "row"  # the request has `instances`, the response `predictions`
    COLUMNAR = "columnar"  # the request has `inputs`, the response `outputs`


@dataclasses.dataclass(slots=True)
class Document:
    """A parsed body of `size` bytes; `predict_format` has a meaning for predict requests only.

    The tensors of a large body may be NumberArrays; `body` is set then. `plain_members` are the
    members as JSON values.
    """

    members: dict[str, Any]
    size: int
    predict_format: PredictFormat
    body: bytes | None = None

    def plain_members(self) -> dict[str, Any]:
        """Return the members without NumberArrays, for what requires lists: faults above all."""
        if self.body is not None:
            self.members, self.body = _whole_members(self.body), None
        return self.members


class SignatureInputs(Protocol):
    """The part of a signature that is required to decode inputs."""

    @property
    def input_types(self) -> Mapping[str, DataType]:
        """The element type of each input, by alias."""


def quick_document(body: bytes) -> Document | None:
    """Parse a body, or return None if only the parser of unusual JSON can read it.

    That parser takes thirty times as long, so it should run on another thread.
    """
    try:
        members = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return Document(members, len(body), _format(members)) if isinstance(members, dict) else None


def parse_document(body: bytes) -> Document:
    """Parse a body, which must be a JSON object.

    Raises InvalidArgumentError with TensorFlow Serving's text.
    """
    if not body:
        raise InvalidArgumentError("JSON Parse error: The document is empty")
    document = quick_document(body) if len(body) < LARGE_BODY_BYTES else None
    if document is not None:
        return document
    sliced = read_sliced(body, _TENSOR_KEYS, _TOLERANT)
    members = _whole_members(body) if sliced is None else sliced
    return Document(members, len(body), _format(members), None if sliced is None else body)


def _format(members: dict[str, Any]) -> PredictFormat:
    return PredictFormat.ROW if "instances" in members else PredictFormat.COLUMNAR


def _whole_members(body: bytes) -> dict[str, Any]:
    members: Any
    if len(body) >= LARGE_BODY_BYTES:
        members = LargeBody(body, SERVING_JSON).value()
        for key in _TEXT_KEYS if isinstance(members, dict) else ():
            if isinstance(members.get(key), LargeText):
                members[key] = members[key].text()
    else:
        try:
            members = orjson.loads(body)
        except orjson.JSONDecodeError:
            members = parse_tolerant(body)
    if not isinstance(members, dict):
        raise _format_error(members, "Is not object")
    return members


def signature_name(document: Document) -> str:
    """Return the name of the signature in the request, or the default name if there is none.

    Raises InvalidArgumentError if the name is not a string.
    """
    name = document.members.get("signature_name", "")
    if not isinstance(name, str):
        raise _format_error(
            document.plain_members(),
            "not formatted correctly. 'signature_name' key must be a string value.",
        )
    return name or DEFAULT_SIGNATURE


def predict_inputs(
    document: Document, signature: str, strict: bool, inputs: SignatureInputs
) -> dict[str, np.ndarray]:
    """Read the tensors of `instances` (row form) or `inputs` (columnar form), by alias.

    `signature` is the name of the signature. If `strict` is true, an int8, uint8 or int16 that is
    out of range wraps, and a signature without inputs is refused, as in TensorFlow Serving. If
    `strict` is false, a number that is out of range is refused, and a signature without inputs
    accepts `"inputs": {}` or no key. Raises InvalidArgumentError if the body does not fit the
    signature, and UnimplementedError if a columnar input has a type that JSON cannot express.
    """
    input_types = inputs.input_types
    reader = _WRAPPING_READER if strict else _EXACT_READER
    if document.body is not None:
        tensors = _sliced_tensors(document.members, input_types, reader)
        if tensors is not None:
            document.members, document.body = {}, None  # the step may take long
            return tensors
        document.plain_members()
    if not input_types:
        if (
            not strict
            and "instances" not in document.members
            and not document.members.get("inputs")
        ):
            return {}
        name = "DEFAULT" if signature == DEFAULT_SIGNATURE else signature
        raise InvalidArgumentError(f"Failed to get input map for signature: {name}")
    members = document.members
    if "instances" in members:
        instances = _checked_instances(members)
        if isinstance(instances, LargeList):
            return _large_rows(instances, input_types, reader)
        tensors = _fast_rows(instances, input_types, reader.fast_array)
        if tensors is None:
            tensors = _Rows(input_types, reader).read(instances)
        return tensors
    if "inputs" in members:
        return _columns(members["inputs"], input_types, reader)
    raise InvalidArgumentError("Missing 'inputs' or 'instances' key")


def _sliced_tensors(
    members: dict[str, Any], input_types: Mapping[str, DataType], reader: TensorReader
) -> dict[str, np.ndarray] | None:
    """Convert tensors that are NumberArrays; return None if one does not fit the signature."""
    if not input_types or ("instances" in members and "inputs" in members):
        return None
    try:
        if "inputs" in members:
            return _columns(members["inputs"], input_types, reader)
    except OpError:
        return None
    instances = members["instances"]
    if not isinstance(instances, NumberArray):
        return (
            _fast_rows(instances, input_types, reader.fast_array)
            if isinstance(instances, list)
            else None
        )
    if len(input_types) > 1:
        return None
    ((name, data_type),) = input_types.items()
    array = reader.fast_array(instances, data_type)
    return None if array is None else {name: array}


def _checked_instances(members: dict[str, Any]) -> list[Any] | LargeList:
    if "inputs" in members:
        raise _format_error(
            members,
            "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ",
        )
    instances = members["instances"]
    if not isinstance(instances, LISTS):
        raise _format_error(members, "Expecting 'instances' to be an list/array")
    if not (instances.size if isinstance(instances, LargeList) else instances):
        raise _format_error(members, "No values in 'instances' array")
    return instances


def _is_object(value: Any) -> bool:
    """Return whether an instance is an object of named tensors; `{"b64": "…"}` is a value."""
    return isinstance(value, dict) and not is_base64(value)


def _fast_rows(
    instances: list[Any],
    input_types: Mapping[str, DataType],
    read: Callable[[Any, DataType], np.ndarray | None],
) -> dict[str, np.ndarray] | None:
    """Convert all instances at once; return None if one of them is not regular."""
    if not _is_object(instances[0]):
        if len(input_types) > 1:
            return None
        ((name, data_type),) = input_types.items()
        array = read(instances, data_type)
        return None if array is None else {name: array}
    tensors = {}
    for name, data_type in input_types.items():
        try:
            column = [instance[name] for instance in instances]
        except (KeyError, TypeError, IndexError):
            return None
        whole = stacked(column) if type(column[0]) is NumberArray else column
        array = read(whole, data_type)
        if array is None:
            return None
        tensors[name] = array
    if any(len(instance) != len(input_types) for instance in instances):
        return None
    return tensors


def _large_rows(
    large: LargeList, input_types: Mapping[str, DataType], reader: TensorReader
) -> dict[str, np.ndarray]:
    """Convert the instances of a large list, several at a time, as _Rows does."""
    tensors: dict[str, np.ndarray] = {}
    is_object = False
    for index, instances in _rows_of(large):
        if not index:
            is_object = _is_object(instances[0])
        batch = None
        if _is_object(instances[0]) is is_object:
            batch = _fast_rows(instances, input_types, reader.batch_array)
        if batch is None or any(
            tensors[name].shape[1:] != part.shape[1:] for name, part in batch.items() if tensors
        ):
            rows = _Rows(input_types, reader, {name: each[0] for name, each in tensors.items()})
            batch = rows.read(instances, index, is_object=is_object)
        if not tensors:
            tensors = {
                name: np.empty((large.size, *part.shape[1:]), part.dtype)
                for name, part in batch.items()
            }
        for name, part in batch.items():
            tensors[name][index : index + len(part)] = part
    return tensors


def _rows_of(large: LargeList) -> Iterator[tuple[int, list[Any]]]:
    """Yield the instances of a large list; raise the error of `_Rows` if one is too deep."""
    try:
        yield from large.rows()
    except DeepListError as deep:
        try:
            check_rank(deep.depth - 1)
        except OpError as error:
            _raise_for_element(str(deep.index), error)
        raise


class _Rows:
    """Converts instances one by one: each gives one tensor per input.

    All tensors for the same input must have the same shape, and that of `before`.
    """

    def __init__(
        self,
        input_types: Mapping[str, DataType],
        reader: TensorReader,
        before: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        self._input_types = input_types
        self._reader = reader
        self._before = len(before or {}) and 1
        self._tensors = {
            name: [np.asarray(each, input_types[name].numpy)]
            for name, each in (before or {}).items()
        }

    def read(
        self, instances: list[Any], first: int = 0, *, is_object: bool | None = None
    ) -> dict[str, np.ndarray]:
        """Convert instances, of which the first one has this index."""
        if not isinstance(instances[0], dict) and len(self._input_types) > 1:
            raise InvalidArgumentError(
                "instances is a plain list, but expecting list of objects as multiple "
                "input tensors required as per tensorinfo_map"
            )
        if is_object is None:
            is_object = _is_object(instances[0])
        add = self._add_object if is_object else self._add_value
        for index, instance in enumerate(instances, first):
            add(index, instance)
        for parts in self._tensors.values():
            check_rank(1 + parts[0].ndim)
        return {name: np.stack(parts[self._before :]) for name, parts in self._tensors.items()}

    def _add_object(self, index: int, instance: Any) -> None:
        if not _is_object(instance):
            raise InvalidArgumentError(
                f"Expecting object but got list at item {index} of input list"
            )
        for name, value in instance.items():
            try:
                self._add(name, value)
            except OpError as error:
                _raise_for_element(f"{index} key: {name}", error)
        if instance.keys() != self._input_types.keys():
            raise InvalidArgumentError(
                f"Failed to process element: {index} of 'instances' list. "
                f"JSON object: {debug_string(instance)} "
                f"keys must be equal to: {','.join(sorted(self._input_types))}"
            )

    def _add_value(self, index: int, instance: Any) -> None:
        if _is_object(instance):
            raise InvalidArgumentError(
                f"Expecting value/list but got object at item {index} of input list"
            )
        try:
            self._add(next(iter(self._input_types)), instance)
        except OpError as error:
            _raise_for_element(str(index), error)

    def _add(self, name: str, value: Any) -> None:
        if name not in self._input_types:
            raise InvalidArgumentError(f"JSON object: does not have named input: {name}")
        tensor = self._reader.slow_array(value, self._input_types[name])
        parts = self._tensors.setdefault(name, [])
        if parts and parts[0].size != tensor.size:
            raise InvalidArgumentError(
                f"Expecting tensor size: {parts[0].size} but got: {tensor.size}"
            )
        if parts and parts[0].shape != tensor.shape:
            raise InvalidArgumentError(
                f"Expecting shape {shape_text(parts[0].shape)} but got: {shape_text(tensor.shape)}"
            )
        parts.append(tensor)


def _raise_for_element(where: str, error: OpError) -> NoReturn:
    raise InvalidArgumentError(
        f"Failed to process element: {where} of 'instances' list. "
        f"Error: {error.code.name}: {error.message}"
    ) from error


def _columns(
    value: Any, input_types: Mapping[str, DataType], reader: TensorReader
) -> dict[str, np.ndarray]:
    if not _is_object(value):
        if len(input_types) > 1:
            raise InvalidArgumentError(
                "inputs is a plain value/list, but expecting an object as multiple "
                "input tensors required as per tensorinfo_map"
            )
        ((name, data_type),) = input_types.items()
        return {name: reader.array(value, data_type)}
    tensors = {}
    for name, data_type in input_types.items():
        if name not in value:
            raise InvalidArgumentError(f"Missing named input: {name} in 'inputs' object.")
        tensors[name] = reader.array(value[name], data_type)
    return tensors


def _format_error(value: Any, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"JSON Value: {debug_string(value)} {what}")
