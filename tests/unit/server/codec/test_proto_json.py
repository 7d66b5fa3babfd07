"""Messages from JSON: whatever the values are, an error is the client's."""

from __future__ import annotations

from typing import Any

import pytest

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from server.codec.proto_json import read_json_proto


def test_names_and_values_become_fields() -> None:
    options = read_json_proto({"trace_level": "FULL_TRACE"}, "options", pb.RunOptions)
    assert options == pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)


@pytest.mark.parametrize(
    "value",
    [
        {"trace_level": float("inf")},
        {"trace_level": float("nan")},
        {"timeout_in_ms": float("-inf")},
        {"timeout_in_ms": 1 << 70},
        {"timeout_in_ms": "\ud800"},
        {"unknown": 1},
        {"debug_options": [1]},
    ],
)
def test_what_is_no_message_is_an_invalid_argument(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="options is not a RunOptions"):
        read_json_proto(value, "options", pb.RunOptions)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"timeout_ms": 1},
            "options has no field 'timeout_ms'; RunOptions has trace_level, timeout_in_ms, "
            "inter_op_thread_pool, output_partition_graphs, debug_options, ",
        ),
        (
            {"debugOptions": {"debug_tensor_watch_opts": [{}, {"node": "a"}]}},
            "options.debug_options.debug_tensor_watch_opts[1] has no field 'node'; "
            "DebugTensorWatch has node_name, output_slot, ",
        ),
        ({"timeout_in_ms": "soon"}, "Failed to parse timeout_in_ms field: "),
    ],
)
def test_an_unknown_field_is_named_with_the_fields_there_are(value: Any, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_json_proto(value, "options", pb.RunOptions)
    assert caught.value.message.startswith(f"options is not a RunOptions: {text}")
