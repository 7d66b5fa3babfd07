"""A model behind gRPC: TensorFlow Serving's PredictionService."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import grpc
import numpy as np

import protos as pb
from runtime.api import tensor_to_proto
from runtime.errors import NotFoundError, UnavailableError
from server.commands.load.address import Address
from server.commands.load.example_inputs import make_inputs, signature_named, specs_of
from server.commands.load.target import CallFailed

_SERVICE = "/tensorflow.serving.PredictionService"
_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # a connection of its own for each caller
]


class GrpcServer:
    """A server's address, with the metadata that each call has."""

    def __init__(
        self,
        address: Address,
        root_certificates: bytes | None,
        headers: Sequence[str],
        timeout_seconds: float,
    ) -> None:
        self.address = address
        self._roots = root_certificates
        self.timeout_seconds = timeout_seconds
        pairs = (line.partition(":") for line in headers)
        self.metadata = [(name.strip().lower(), value.strip()) for name, _, value in pairs]

    def channel(self) -> grpc.Channel:
        """Return a new connection, which is made at its first call."""
        if not self.address.encrypted:
            return grpc.insecure_channel(self.address.authority, options=_OPTIONS)
        credentials = grpc.ssl_channel_credentials(self._roots)
        return grpc.secure_channel(self.address.authority, credentials, options=_OPTIONS)


class GrpcTarget:
    """The same Predict for each call."""

    in_process = False

    def __init__(self, server: GrpcServer, request: bytes) -> None:
        self._server = server
        self._request = request
        self.description = f"gRPC Predict of {server.address}"

    def open(self) -> _GrpcCall:
        """Return a connection of one more caller."""
        return _GrpcCall(self._server, self._request)

    def close(self) -> None:
        """Do nothing: connections are their callers'."""


class _GrpcCall:
    def __init__(self, server: GrpcServer, request: bytes) -> None:
        self._channel = server.channel()
        self._call = self._channel.unary_unary(f"{_SERVICE}/Predict")
        self._request = request
        self._timeout = server.timeout_seconds
        self._metadata = server.metadata

    def __call__(self) -> None:
        try:
            self._call(self._request, timeout=self._timeout, metadata=self._metadata)
        except grpc.RpcError as error:
            raise _failed(error) from None

    def close(self) -> None:
        self._channel.close()


def _failed(error: Any) -> CallFailed:
    """Return what a call of grpcio says that failed: such an error is a grpc.Call too."""
    code = error.code().name
    return CallFailed(code, str(error.details()), lost=code == "UNAVAILABLE")


def grpc_target(server: GrpcServer, signature: str, batch: int, file: str | None) -> GrpcTarget:
    """Return the target of Predict; the inputs are examples, or those of `file`.

    Raises OpError if the model or the signature is not there.
    """
    spec = _model_spec(server.address, signature)
    found = signature_named(_signatures(server, spec), signature, str(server.address))
    return GrpcTarget(server, predict_request(spec, make_inputs(specs_of(found), batch, file)))


def predict_request(spec: pb.serving.ModelSpec, inputs: Mapping[str, np.ndarray]) -> bytes:
    """Return a PredictRequest."""
    request = pb.serving.PredictRequest(model_spec=spec)
    for name, array in inputs.items():
        request.inputs[name].CopyFrom(tensor_to_proto(array))
    return request.SerializeToString()


def _model_spec(address: Address, signature: str) -> pb.serving.ModelSpec:
    spec = pb.serving.ModelSpec(name=address.model, signature_name=signature)
    if address.version:
        spec.version.value = int(address.version)
    return spec


def _signatures(server: GrpcServer, spec: pb.serving.ModelSpec) -> Mapping[str, pb.SignatureDef]:
    request = pb.serving.GetModelMetadataRequest(model_spec=spec, metadata_field=["signature_def"])
    where = f"GetModelMetadata of {server.address}"
    with server.channel() as channel:
        call = channel.unary_unary(f"{_SERVICE}/GetModelMetadata")
        try:
            content = call(
                request.SerializeToString(),
                timeout=server.timeout_seconds,
                metadata=server.metadata,
            )
        except grpc.RpcError as error:
            failure = _failed(error)
            kind = NotFoundError if failure.code == "NOT_FOUND" else UnavailableError
            raise kind(f"{where}: {failure.code}: {failure.message}") from None
    signatures = pb.serving.SignatureDefMap()
    response = pb.serving.GetModelMetadataResponse.FromString(content)
    if not pb.unpack_any(response.metadata["signature_def"], signatures):
        raise UnavailableError(f"{where} says no signatures")
    return signatures.signature_def
