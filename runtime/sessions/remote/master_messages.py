"""Makes requests and reads responses of the master service, for gRPC and HTTP sessions.

TF: tensorflow/core/protobuf/master.proto, distributed_runtime/rpc/grpc_session.cc
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import protos as pb
from runtime.foundation.errors import InternalError, error_for_code
from runtime.framework.tensor_codec import tensor_from_proto, tensor_to_proto
from runtime.graph.tensor_name import parse_tensor_name
from runtime.sessions.runtime_session import Tensor


def run_step_request(
    feeds: Mapping[str, Tensor],
    fetches: Sequence[str],
    targets: Sequence[str] = (),
    options: pb.RunOptions | None = None,
    partial_run_handle: str = "",
) -> pb.RunStepRequest:
    """Return the RunStepRequest of one step; its session handle is not set.

    The request tells the server to return an error of the step in the body of the response.
    """
    return pb.RunStepRequest(
        feed=[
            pb.NamedTensorProto(name=full_name(name), tensor=tensor_to_proto(value))
            for name, value in feeds.items()
        ],
        fetch=unique_fetches(fetches)[0],
        target=targets,
        options=options,
        partial_run_handle=partial_run_handle,
        store_errors_in_response_body=True,
    )


def partial_run_setup_request(
    feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]
) -> pb.PartialRunSetupRequest:
    """Return the request that starts a partial run; its session handle is not set."""
    return pb.PartialRunSetupRequest(
        feed=[full_name(name) for name in feeds],
        fetch=[full_name(name) for name in fetches],
        target=targets,
    )


def full_name(name: str) -> str:
    """Return `name` with an output index: `x:0` for `x`.

    TensorFlow's master blocks for ever if the index is missing.
    """
    node, index = parse_tensor_name(name)
    return f"{node}:{index}"


def unique_fetches(fetches: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the full names of `fetches` without repetitions, and the index of each fetch in them.

    TensorFlow's client never fetches a tensor twice in one step. If a callable does, TensorFlow's
    master returns no value for the second fetch.
    """
    places: dict[tuple[str, int], int] = {}
    unique: list[str] = []
    for name in fetches:
        tensor = parse_tensor_name(name)
        if tensor not in places:
            places[tensor] = len(unique)
            unique.append(full_name(name))
    return unique, [places[parse_tensor_name(name)] for name in fetches]


def fetched_values(
    response: pb.RunStepResponse, fetches: Sequence[str], metadata: pb.RunMetadata | None
) -> list[Tensor]:
    """Return the fetched values in the order of `fetches`; the response may have another order.

    If `metadata` is given, the metadata of the step is merged into it. Raises the OpError that the
    response contains, and InternalError if a value is missing.
    """
    if response.status_code:
        raise error_for_code(response.status_code, response.status_error_message)
    if metadata is not None:
        metadata.MergeFrom(response.metadata)
    tensors = {parse_tensor_name(each.name): each.tensor for each in response.tensor}
    values = []
    for name in fetches:
        tensor = tensors.get(parse_tensor_name(name))
        if tensor is None:
            raise InternalError(f"The server did not return {name}")
        values.append(tensor_from_proto(tensor))
    return values


def timeout_seconds(options: pb.RunOptions | None, config: pb.ConfigProto) -> float | None:
    """Return the time limit of a step in seconds, or None for no limit.

    The limit in `options` takes precedence over the limit in `config`.
    """
    milliseconds = options.timeout_in_ms if options is not None else 0
    if milliseconds <= 0:
        milliseconds = config.operation_timeout_in_ms
    return milliseconds / 1000 if milliseconds > 0 else None
