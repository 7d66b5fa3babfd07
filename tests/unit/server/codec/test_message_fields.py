"""Fields are read as protobuf reads them, and what is no message is refused."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError

import protos as pb
from runtime.api import tensor_to_proto
from server.codec.message_fields import bytes_fields, timeout_of_run_step


def test_a_field_among_others() -> None:
    spec = pb.serving.ModelSpec(name="digits", signature_name="s")
    spec.version.value = 1 << 40
    tensor = tensor_to_proto(np.arange(1000, dtype=np.float32))
    request = pb.serving.PredictRequest(model_spec=spec, inputs={"x": tensor, "y": tensor})
    request.output_filter.append("z")
    (found,) = bytes_fields(request.SerializeToString(), 1)
    assert pb.serving.ModelSpec.FromString(found) == spec
    assert len([*bytes_fields(request.SerializeToString(), 2)]) == 2
    assert [*bytes_fields(request.SerializeToString(), 9)] == []


def test_values_of_a_message_are_merged() -> None:
    first = pb.serving.PredictRequest(model_spec=pb.serving.ModelSpec(name="a", signature_name="s"))
    second = pb.serving.PredictRequest(model_spec=pb.serving.ModelSpec(name="b"))
    data = first.SerializeToString() + second.SerializeToString()
    merged = pb.serving.ModelSpec.FromString(b"".join(bytes_fields(data, 1)))
    assert merged == pb.serving.PredictRequest.FromString(data).model_spec
    assert (merged.name, merged.signature_name) == ("b", "s")


def test_all_wire_types_are_passed_over() -> None:
    data = b"\x10\x96\x01" + b"\x19" + bytes(8) + b"\x25" + bytes(4) + b"\x0a\x02ok"
    assert [*bytes_fields(data, 1)] == [b"ok"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x0a\x05abc", "A field is longer than the message"),
        (b"\x80", "A number does not end"),
        (b"\xff" * 11, "A number does not end"),
        (b"\x0b", "A field has the wire type 3"),
    ],
)
def test_what_is_no_message(data: bytes, message: str) -> None:
    with pytest.raises(DecodeError, match=message):
        list(bytes_fields(data, 1))


def test_a_message_of_very_many_fields_is_not_looked_through() -> None:
    field = b"\x10\x01"  # an integer
    assert [*bytes_fields(field * 10_000, 1)] == []
    with pytest.raises(DecodeError, match="more than 10000 fields"):
        [*bytes_fields(field * 10_001, 1)]


def options_of(**fields: int) -> bytes:
    return pb.RunStepRequest(options=pb.RunOptions(**fields)).SerializeToString()


STEP = pb.RunStepRequest(session_handle="a", fetch=["y:0"]).SerializeToString()


@pytest.mark.parametrize(
    ("data", "milliseconds"),
    [
        (b"", 0),
        (STEP, 0),
        (options_of(timeout_in_ms=1500), 1500),
        (STEP + options_of(timeout_in_ms=1500) + STEP, 1500),
        (options_of(timeout_in_ms=1 << 40), 1 << 40),
        (options_of(timeout_in_ms=-1), 0),
        # Options in parts are one message, as protobuf reads them.
        (options_of(timeout_in_ms=1500) + options_of(inter_op_thread_pool=1), 1500),
        (options_of(timeout_in_ms=1500) + STEP + options_of(timeout_in_ms=700), 700),
        # What is no message is for whoever reads the whole.
        (options_of(timeout_in_ms=1500) + b"\x80", 0),
        (b"\x2a\x02\x10\x80", 0),  # the options are none
        (b"\x28\x05", 0),  # a number in their place
        (b"\xff" * 20, 0),
    ],
)
def test_the_timeout_of_a_step(data: bytes, milliseconds: int) -> None:
    for each in (data, memoryview(data)):
        assert timeout_of_run_step(each) == milliseconds
