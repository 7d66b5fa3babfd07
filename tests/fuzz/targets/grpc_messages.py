"""Messages of TensorFlow's master service: a few calls on a session of their own.

The code must be one that a client may cause, so never INTERNAL or UNKNOWN.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np
from google.protobuf.message import DecodeError, Message

import protos as pb
from runtime.framework.tensor_codec import tensor_to_proto
from runtime.sessions.remote.grpc_session import RESPONSES
from server.rest.session_docs import half_plus_two_graph, square_of_y_graph
from tests.fuzz.children import enter
from tests.fuzz.mutate_bytes import join_frames, mutated_bytes, smaller_bytes, split_frames
from tests.fuzz.mutate_messages import mutate_message, smaller_messages
from tests.fuzz.served import GrpcAnswer, Served, graph_of_types
from tests.fuzz.target import Target

_HANDLE = b"S" * 22  # stands for the id of the session, which may have another length
_PARTIAL = b"PARTIAL"
_AS_BYTES = 0.3  # of the messages are changed as bytes
_WRONG = ("INTERNAL", "UNKNOWN")


class GrpcMessages(Target):
    """Mutated messages, one to three calls an input."""

    name = "grpc_messages"
    inputs_a_child = 2000

    def __init__(self) -> None:
        self._seeds = _seeds()

    def start(self) -> None:
        self._served = Served()

    def make(self, random_state: random.Random) -> bytes:
        frames = []
        for _ in range(random_state.choice((1, 1, 2, 3))):
            method = random_state.choice(sorted(self._seeds))
            seeds = self._seeds[method]
            seed = random_state.choice(seeds)
            message = type(seed)()
            message.CopyFrom(seed)
            for _ in range(random_state.choice((0, 1, 1, 2, 3))):
                mutate_message(message, random_state, seeds)
            data = message.SerializePartialToString()
            if random_state.random() < _AS_BYTES:
                data = mutated_bytes(data, random_state)
            frames += [method.encode(), data]
        return join_frames(frames)

    def run(self, data: bytes) -> str:
        created = self._call("CreateSession", _create().SerializeToString())
        session = pb.CreateSessionResponse.FromString(created.content).session_handle
        setup = pb.PartialRunSetupRequest(session_handle=session, feed=["x:0"], fetch=["y:0"])
        begun = self._call("PartialRunSetup", setup.SerializeToString())
        partial = pb.PartialRunSetupResponse.FromString(begun.content).partial_run_handle
        callable_ = pb.MakeCallableRequest(session_handle=session)
        callable_.options.MergeFrom(pb.CallableOptions(feed=["x:0"], fetch=["y:0"]))
        self._call("MakeCallable", callable_.SerializeToString())
        handles = {_HANDLE: session.encode(), _PARTIAL: partial.encode()}
        outcome = "none"
        frames = split_frames(data)
        opened = [session]
        for method, content in zip(frames[::2], frames[1::2], strict=True):
            name = method.decode()
            answer = self._call(name, _with_handles(name, content, handles))
            outcome = _outcome(name, answer)
            if outcome.isupper() or " " in outcome:
                return outcome
            if outcome == "ok" and name == "CreateSession":
                opened.append(pb.CreateSessionResponse.FromString(answer.content).session_handle)
            if answer.code == "DEADLINE_EXCEEDED":
                enter("after the deadline")
                self._served.until_idle()
        for each in opened:
            close = pb.CloseSessionRequest(session_handle=each)
            self._call("CloseSession", close.SerializeToString())
        return outcome

    def smaller(self, data: bytes) -> Iterator[bytes]:
        frames = split_frames(data)
        for at in range(0, len(frames), 2):
            yield join_frames(frames[:at] + frames[at + 2 :])
        for at in range(1, len(frames), 2):
            for each in _smaller(frames[at - 1].decode(), frames[at]):
                yield join_frames([*frames[:at], each, *frames[at + 1 :]])

    def _call(self, method: str, data: bytes) -> GrpcAnswer:
        return self._served.grpc(method, data)


def _request(method: str) -> type[Message]:
    found: type[Message] = getattr(pb, f"{method}Request")
    return found


def _with_handles(method: str, data: bytes, handles: dict[bytes, bytes]) -> bytes:
    """Put the handles in the place of what stands for them; in bytes only those as long."""
    try:
        message = _request(method).FromString(data)
    except DecodeError:
        return data
    for field in ("session_handle", "partial_run_handle"):
        if field in message.DESCRIPTOR.fields_by_name:
            given = getattr(message, field)
            setattr(message, field, handles.get(given.encode(), given.encode()).decode())
    return message.SerializePartialToString()


def _outcome(method: str, answer: GrpcAnswer) -> str:
    if answer.code in _WRONG:
        return f"CODE {method} {answer.code}: {answer.content.decode()[:300]}"
    if answer.code == "OK":
        RESPONSES[method].FromString(answer.content)
    return answer.code.lower()


def _smaller(method: str, data: bytes) -> Iterator[bytes]:
    try:
        message = _request(method).FromString(data)
    except DecodeError:
        yield from smaller_bytes(data)
    else:
        for each in smaller_messages(message):
            yield each.SerializePartialToString()


def _create() -> pb.CreateSessionRequest:
    graph = half_plus_two_graph()
    graph.MergeFrom(graph_of_types())
    return pb.CreateSessionRequest(graph_def=graph)


def _seeds() -> dict[str, Sequence[Message]]:
    session = _HANDLE.decode()
    x = tensor_to_proto(np.array([1, 2], np.float32))
    words = tensor_to_proto(np.array([b"a", b""], object))
    step = pb.RunStepRequest(session_handle=session, fetch=["y:0"])
    step.feed.add(name="x:0").tensor.CopyFrom(x)
    other = pb.RunStepRequest(
        session_handle=session,
        fetch=["out_7", "out_9:0"],
        target=["out_7"],
        store_errors_in_response_body=True,
        request_id=3,
    )
    other.feed.add(name="in_7:0").tensor.CopyFrom(words)
    other.feed.add(name="in_9").tensor.CopyFrom(tensor_to_proto(np.arange(6).reshape(2, 3)))
    other.options.timeout_in_ms = 300
    other.options.trace_level = pb.RunOptions.FULL_TRACE
    part = pb.RunStepRequest()
    part.CopyFrom(step)
    part.partial_run_handle = _PARTIAL.decode()
    make = pb.MakeCallableRequest(session_handle=session)
    make.options.feed.append("x:0")
    make.options.fetch.append("y:0")
    make.options.target.append("half_x")
    make.options.run_options.timeout_in_ms = 300
    make.options.tensor_connection.add(from_tensor="two:0", to_tensor="half:0")
    prepared = pb.RunCallableRequest(session_handle=session, handle=1, feed=[x])
    config = _create()
    config.config.inter_op_parallelism_threads = 1
    config.config.isolate_session_state = True
    config.config.session_inter_op_thread_pool.add(num_threads=1, global_name="online")
    config.config.graph_options.optimizer_options.opt_level = 0
    return {
        "CreateSession": [pb.CreateSessionRequest(graph_def=half_plus_two_graph()), config],
        "ExtendSession": [
            pb.ExtendSessionRequest(session_handle=session, graph_def=square_of_y_graph())
        ],
        "PartialRunSetup": [
            pb.PartialRunSetupRequest(
                session_handle=session, feed=["x:0", "in_9"], fetch=["y:0"], target=["half_x"]
            )
        ],
        "RunStep": [step, other, part],
        "CloseSession": [pb.CloseSessionRequest(session_handle=session)],
        "ListDevices": [pb.ListDevicesRequest(session_handle=session), pb.ListDevicesRequest()],
        "Reset": [pb.ResetRequest(container=["a"], device_filters=["/job:x"]), pb.ResetRequest()],
        "MakeCallable": [make],
        "RunCallable": [prepared],
        "ReleaseCallable": [pb.ReleaseCallableRequest(session_handle=session, handle=1)],
    }
