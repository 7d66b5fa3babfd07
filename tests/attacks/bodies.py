"""Bodies that are large, compressed, or fit no fast path of the codecs."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable

import protos as pb
from runtime.api import DataType
from server.rest.session_docs import half_plus_two_graph
from tests.attacks.attack import JSON, PROTOBUF, Attack, Prepare, Target

PREDICT = "/v1/models/half_plus_two:predict"
GZIP = JSON | {"Content-Encoding": "gzip"}
MEGABYTE = 1_000_000
NUMBER = b"0.8414709848078965,"  # as JSON has them
EMPTY_MEMBER = gzip.compress(b"", mtime=0)
BAD_BODY = ("400 INVALID_ARGUMENT",)


def predict(body: Callable[[int], bytes], headers: dict[str, str] = JSON) -> Prepare:
    """POST a body to a model."""

    def prepare(target: Target, size: int) -> Callable[[], str]:
        made = body(size)
        return lambda: target.post(PREDICT, made, headers)

    return prepare


def run_step(feed: Callable[[int], bytes]) -> Prepare:
    """POST a step whose feed is this text."""

    def prepare(target: Target, size: int) -> Callable[[], str]:
        session = target.open_session(half_plus_two_graph())
        made = b'{"feeds": {"x:0": ' + feed(size) + b'}, "fetches": ["y:0"]}'
        return lambda: target.post(f"{session}:run", made)

    return prepare


def numbers(size: int) -> bytes:
    """Return the elements of a JSON array of about `size` bytes; a comma ends them."""
    return NUMBER * (size // len(NUMBER))


def instances(last: bytes, first: bytes = b"") -> Callable[[int], bytes]:
    """Return a body with these last elements (and the rest of it)."""
    return lambda size: b'{"instances": [' + first + numbers(size) + last + b"]}"


def bomb(size: int) -> bytes:
    return gzip.compress(b'{"instances": [' + b" " * size + b"1]}", 9)


def texts(size: int) -> bytes:
    return b'{"instances": [' + b'"a text of a string array",' * (size // 27) + b'"end"]}'


def deep(size: int) -> bytes:
    return b'{"instances": ' + b"[" * size + b"]" * size + b"}"


def keys(size: int) -> bytes:
    return json.dumps({f"key {index}": index for index in range(size)}).encode()


def base64_feed(size: int) -> bytes:
    data = base64.b64encode(b"\x00" * (size // 4 * 3))
    count = len(data) // 4 * 3 // 4
    return b'{"dtype": "float32", "shape": [%d], "b64": "%s"}' % (count, data)


def claimed_step(session: str, size: int) -> bytes:
    """Return a message that feeds one value with the shape [size]."""
    step = pb.RunStepRequest(session_handle=session, fetch=["y:0"])
    feed = step.feed.add(name="x:0").tensor
    feed.dtype = pb.DT_FLOAT
    feed.tensor_shape.dim.add(size=size)
    feed.float_val.append(1)
    return step.SerializeToString()


def claimed_over_rest(target: Target, size: int) -> Callable[[], str]:
    session = target.open_session(half_plus_two_graph())
    body = claimed_step("", size)
    return lambda: target.post(f"{session}:run", body, PROTOBUF)


def claimed_over_grpc(target: Target, size: int) -> Callable[[], str]:
    session = grpc_session(target, half_plus_two_graph())
    body = claimed_step(session, size)
    return lambda: target.call_grpc("RunStep", body)[0]


def large_answer_over_grpc(target: Target, size: int) -> Callable[[], str]:
    """A step of 55 bytes whose answer is a constant of one value and a large shape."""
    graph = pb.GraphDef(versions=pb.VersionDef(producer=2474))
    graph.node.add(name="c", op="Const").attr["dtype"].type = DataType.FLOAT  # type: ignore[assignment]
    tensor = graph.node[0].attr["value"].tensor
    tensor.dtype = pb.DT_FLOAT
    tensor.tensor_shape.dim.add(size=size)
    tensor.float_val.append(1)
    session = grpc_session(target, graph)
    step = pb.RunStepRequest(session_handle=session, fetch=["c:0"]).SerializeToString()
    return lambda: target.call_grpc("RunStep", step)[0]


def malformed_over_grpc(target: Target, size: int) -> Callable[[], str]:
    body = b"\xff" * size
    return lambda: target.call_grpc("RunStep", body)[0]


def grpc_session(target: Target, graph: pb.GraphDef) -> str:
    """Open a session over gRPC and return its handle."""
    request = pb.CreateSessionRequest(graph_def=graph)
    code, answer = target.call_grpc("CreateSession", request.SerializeToString())
    assert code == "OK"
    return str(pb.CreateSessionResponse.FromString(answer).session_handle)


ATTACKS = (
    Attack(
        "gzip_members", "a gzip body of {} empty members",
        "inflated in linear time beside the event loop, then refused: the members are too many",
        ("rest.max_body_bytes",), ("400 INVALID_ARGUMENT", "413 INVALID_ARGUMENT"),
        predict(lambda count: EMPTY_MEMBER * count, GZIP), 20_000, 1_000_000,
    ),
    Attack(
        "gzip_bomb", "a gzip body that inflates to {} bytes", "refused at the limit",
        ("rest.max_body_bytes",), ("413 INVALID_ARGUMENT",),
        predict(bomb, GZIP), 8 * MEGABYTE, 1000 * MEGABYTE,
    ),
    Attack(
        "long_body", "a body of {} bytes", "refused before it is received",
        ("rest.max_body_bytes",), ("413 INVALID_ARGUMENT", "closed"),
        predict(lambda size: b" " * size), 5 * MEGABYTE, 80 * MEGABYTE,
    ),
    Attack(
        "large_json", "a JSON body of {} bytes", "answered; read in slices beside the event loop",
        ("rest.max_body_bytes",), ("200",), predict(instances(b"1")), MEGABYTE, 57 * MEGABYTE,
    ),
    Attack(
        "nan_in_json", "a JSON body of {} bytes with one `NaN`", "answered, as above",
        ("rest.max_body_bytes",), ("200",), predict(instances(b"NaN")), MEGABYTE, 45 * MEGABYTE,
    ),
    Attack(
        "nan_in_step", "a `:run` of {} bytes with one `NaN`", "answered, as above",
        ("rest.max_body_bytes",), ("200",),
        run_step(lambda size: b"[" + numbers(size) + b"NaN]"), MEGABYTE, 60 * MEGABYTE,
    ),
    *(
        Attack(
            f"{name}_in_json", f"a JSON body of {{}} bytes of numbers with {what}",
            "refused, where it is found", ("rest.max_body_bytes",), BAD_BODY,
            predict(instances(last)), MEGABYTE, 60 * MEGABYTE,
        )
        for name, what, last in (
            ("true", "a `true` at the end", b"true"),
            ("ragged", "a row at the end", b"[1]"),
            ("text", "a string at the end", b'"text"'),
            ("rubbish", "no JSON at the end", b"nothing"),
        )
    ),
    Attack(
        "texts", "a JSON body of {} bytes of strings for a model of numbers", "refused",
        ("rest.max_body_bytes",), BAD_BODY, predict(texts), MEGABYTE, 60 * MEGABYTE,
    ),
    Attack(
        "deep_json", "{} nested arrays", "refused",
        ("rest.max_body_bytes",), BAD_BODY, predict(deep), 100_000, 30 * MEGABYTE,
    ),
    Attack(
        "many_keys", "an object of {} keys", "refused",
        ("rest.max_body_bytes",), BAD_BODY, predict(keys), 20_000, 2_000_000,
    ),
    Attack(
        "base64", "a `:run` of {} bytes of base64", "answered; decoded beside the event loop",
        ("rest.max_body_bytes",), ("200",), run_step(base64_feed), MEGABYTE, 60 * MEGABYTE,
    ),
    Attack(
        "claimed_rest", "a protobuf step that claims {} elements and has one", "refused",
        ("sessions.max_tensor_bytes",), ("400 INVALID_ARGUMENT", "429 RESOURCE_EXHAUSTED"),
        claimed_over_rest, 50 * MEGABYTE, 10**12,
    ),
    Attack(
        "claimed_grpc", "the same over gRPC", "refused",
        ("sessions.max_tensor_bytes",), ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"),
        claimed_over_grpc, 50 * MEGABYTE, 10**12,
    ),
    Attack(
        "large_answer_grpc", "a RunStep of 55 bytes that fetches a constant of {} elements",
        "refused before it is encoded",
        ("rest.max_answer_bytes", "sessions.max_tensor_bytes"), ("RESOURCE_EXHAUSTED",),
        large_answer_over_grpc, 1_500_000, 268_000_000 * 2,
    ),
    Attack(
        "malformed_grpc", "{} bytes over gRPC that are no message", "refused, no traceback",
        ("grpc.max_message_bytes",), ("INVALID_ARGUMENT",),
        malformed_over_grpc, 1000, 50 * MEGABYTE,
    ),
)  # fmt: skip
