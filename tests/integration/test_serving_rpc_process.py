"""TensorFlow Serving's gRPC of a process of its own: it predicts, is watched, and drains."""

from __future__ import annotations

import signal

import grpc
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc

import protos as pb
from runtime.api import tensor_from_proto
from tests.integration.rpc_server import PREDICTION, predict_request
from tests.integration.server_process import SECONDS, ServerProcess

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def test_a_process_predicts_and_tells_those_who_watch_that_it_drains() -> None:
    server = ServerProcess("--config=tests/integration/data/serving_calls.yaml")
    try:
        address = server.grpc_address.removeprefix("grpc://")
        with grpc.insecure_channel(address) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(service="half_plus_two"), timeout=SECONDS
            )
            seen = [next(watch).status]
            while seen[-1] != SERVING:
                seen.append(next(watch).status)
            request = predict_request("half_plus_two", x=np.array([2.0], np.float32))
            call = channel.unary_unary(PREDICTION + "Predict")
            answer = call(request.SerializeToString(), timeout=SECONDS)
            outputs = pb.serving.PredictResponse.FromString(answer).outputs
            assert tensor_from_proto(outputs["y"]).tolist() == [3.0]
            server.process.send_signal(signal.SIGTERM)
            assert [each.status for each in watch] == [NOT_SERVING]
        assert server.process.wait(SECONDS) == 0
    finally:
        server.end()
