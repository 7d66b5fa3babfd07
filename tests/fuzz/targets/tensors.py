"""TensorProtos as feeds, over gRPC and over HTTP: both fronts and the codec must agree."""

from __future__ import annotations

import random
from collections.abc import Iterator

import ml_dtypes
import numpy as np
from google.protobuf.message import DecodeError

import protos as pb
from runtime.errors import OpError
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from tests.fuzz.mutate_bytes import mutated_bytes, smaller_bytes
from tests.fuzz.mutate_messages import mutate_message, smaller_messages
from tests.fuzz.served import TENSOR_BYTES, Answer, GrpcAnswer, Served, graph_of_types, wrong
from tests.fuzz.target import Target, outcome_of
from tests.integration.rest_server import encoded

_AS_BYTES = 0.3
_PROTOBUF = [(b"content-type", b"application/x-protobuf")]
_NUMPY = (
    *(np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.int16, np.int32),
    *(np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.complex64, np.complex128, np.bool_),
    *(ml_dtypes.float8_e5m2, ml_dtypes.int4, ml_dtypes.uint4),
)  # fmt: skip
_WRONG = ("INTERNAL", "UNKNOWN")


class Tensors(Target):
    """Mutated tensors of every type, as content and as values."""

    name = "tensors"
    inputs_a_child = 2000

    def __init__(self) -> None:
        self._seeds = _seeds()

    def start(self) -> None:
        self._served = Served()
        graph = graph_of_types()
        self._types = {int(node.name[3:]) for node in graph.node if node.name.startswith("in_")}
        document = {"graph_def": encoded(graph)}
        self._session = self._served.json("POST", "/v1/sessions", document)["session"]
        # The graph of a session of REST is the same one, and so is its id.
        self._path = f"/v1/sessions/{self._session}:run"

    def make(self, random_state: random.Random) -> bytes:
        tensor = pb.TensorProto()
        tensor.CopyFrom(random_state.choice(self._seeds))
        for _ in range(random_state.choice((0, 1, 1, 2, 3))):
            mutate_message(tensor, random_state, self._seeds)
        data = tensor.SerializeToString()
        return mutated_bytes(data, random_state) if random_state.random() < _AS_BYTES else data

    def run(self, data: bytes) -> str:
        try:
            tensor = pb.TensorProto.FromString(data)
        except DecodeError:
            return "unparsed"
        known = tensor.dtype if tensor.dtype in self._types else pb.DT_FLOAT
        step = pb.RunStepRequest(session_handle=self._session, fetch=[f"out_{known}:0"])
        step.feed.add(name=f"in_{known}:0").tensor.CopyFrom(tensor)
        content = step.SerializeToString()
        rest = self._served.request("POST", self._path, _PROTOBUF, content)
        grpc = self._served.grpc("RunStep", content)
        if wrong(rest):
            return wrong(rest)
        if grpc.code in _WRONG:
            return f"CODE {grpc.code}: {grpc.content.decode()[:300]}"
        return _difference(tensor, rest, grpc) or grpc.code.lower()

    def smaller(self, data: bytes) -> Iterator[bytes]:
        try:
            tensor = pb.TensorProto.FromString(data)
        except DecodeError:
            yield from smaller_bytes(data)
            return
        for each in smaller_messages(tensor):
            yield each.SerializePartialToString()

    def show(self, data: bytes) -> str:
        return str(pb.TensorProto.FromString(data))


def _difference(tensor: pb.TensorProto, rest: Answer, grpc: GrpcAnswer) -> str:
    """Return how the fronts and the codec disagree, or nothing."""
    try:
        fed: np.ndarray | None = tensor_from_proto(tensor, TENSOR_BYTES)
    except OpError as error:
        fed, code = None, outcome_of(error)
        if not code.islower():
            return code
    if fed is None:
        both = (rest.status, grpc.code)
        return f"DIFFERS the codec refuses, the answers are {both}" if "OK" in both else ""
    if rest.status == 504 or grpc.code == "DEADLINE_EXCEEDED":  # on a busy machine
        return ""
    if (rest.status == 200) != (grpc.code == "OK"):
        # Only REST checks feeds against the graph; TensorFlow's master doesn't.
        is_checked = rest.status == 400
        return "" if is_checked else f"DIFFERS REST {rest.status}, gRPC {grpc.code}"
    if grpc.code != "OK":
        return ""
    for content in (rest.body, grpc.content):
        got = tensor_from_proto(pb.RunStepResponse.FromString(content).tensor[0].tensor)
        if got.dtype != fed.dtype or got.shape != fed.shape or not _same(got, fed):
            return f"DIFFERS {fed!r:.150} became {got!r:.150}"
    return ""


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.dtype.hasobject:
        return one.ravel().tolist() == other.ravel().tolist()
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _seeds() -> list[pb.TensorProto]:
    found = []
    for dtype in _NUMPY:
        array = np.arange(6).reshape(2, 3).astype(dtype)
        found += [tensor_to_proto(array), tensor_to_proto(array[0, 1])]
    found.append(tensor_to_proto(np.array([[b"a", b"\xff"], [b"", b"long" * 20]], object)))
    shape = pb.TensorShapeProto(dim=[pb.TensorShapeProto.Dim(size=size) for size in (2, 2)])
    for dtype, field, values in (
        (pb.DT_FLOAT, "float_val", [1.5, 2.5]),
        (pb.DT_DOUBLE, "double_val", [1.5]),
        (pb.DT_INT32, "int_val", [7, -1, 3, 4]),
        (pb.DT_UINT8, "int_val", [255]),
        (pb.DT_INT64, "int64_val", [1 << 40]),
        (pb.DT_UINT64, "uint64_val", [1 << 63, 2]),
        (pb.DT_UINT32, "uint32_val", [1 << 31]),
        (pb.DT_BOOL, "bool_val", [True, False]),
        (pb.DT_HALF, "half_val", [15360, 0]),
        (pb.DT_COMPLEX64, "scomplex_val", [1.0, 2.0]),
        (pb.DT_COMPLEX128, "dcomplex_val", [1.0, 2.0, 3.0, 4.0]),
        (pb.DT_STRING, "string_val", [b"x", b"y"]),
        (pb.DT_QINT8, "int_val", [3]),
    ):
        tensor = pb.TensorProto(dtype=dtype, tensor_shape=shape)
        getattr(tensor, field).extend(values)
        found.append(tensor)
    handle = pb.TensorProto(dtype=pb.DT_RESOURCE, tensor_shape=pb.TensorShapeProto())
    handle.resource_handle_val.add(name="v", container="", device="/cpu:0")
    variant = pb.TensorProto(dtype=pb.DT_VARIANT, tensor_shape=pb.TensorShapeProto())
    variant.variant_val.add(type_name="tensorflow::TensorList", metadata=b"\x01\x02")
    return [*found, handle, variant]
