"""Requests of tensorflow-serving-api's stubs, byte for byte, and the answers of the contract.

`tools/check/serving_clients.py` calls a server with these stubs and records what they send.
"""

from __future__ import annotations

import base64
import json
import pathlib
from typing import Any

import grpc.aio
import yaml
from google.protobuf import json_format

import protos as pb
from tests.integration.rpc_server import RpcServer, with_rpc

DATA = pathlib.Path(__file__).parent / "data"
CALLS: list[dict[str, Any]] = json.loads((DATA / "serving_calls.json").read_text())
ANSWERS: dict[str, Any] = {
    "Predict": pb.serving.PredictResponse,
    "Classify": pb.serving.ClassificationResponse,
    "Regress": pb.serving.RegressionResponse,
    "MultiInference": pb.serving.MultiInferenceResponse,
    "GetModelMetadata": pb.serving.GetModelMetadataResponse,
    "GetModelStatus": pb.serving.GetModelStatusResponse,
    "HandleReloadConfigRequest": pb.serving.ReloadConfigResponse,
    "SessionRun": pb.serving.SessionRunResponse,
}


async def outcome(server: RpcServer, call: dict[str, Any]) -> Any:
    method = server.channel.unary_unary(call["method"])
    try:
        data = await method(base64.b64decode(call["request"]), timeout=60)
    except grpc.aio.AioRpcError as error:
        return [error.code().name, error.details()]
    response = ANSWERS[call["method"].rpartition("/")[2]].FromString(data)
    return json_format.MessageToDict(response, preserving_proto_field_name=True)


def test_recorded_calls_have_the_answers_of_the_contract() -> None:
    settings = yaml.safe_load((DATA / "serving_calls.yaml").read_text())

    async def scenario(server: RpcServer) -> None:
        wrong = []
        for call in CALLS:  # the order matters, because some reload the configuration
            got = await outcome(server, call)
            if got != call["answer"]:
                wrong.append((call["name"], call["answer"], got))
        assert wrong == []

    with_rpc(scenario, **settings)


def test_every_method_was_recorded() -> None:
    assert {call["method"].rpartition("/")[2] for call in CALLS} == set(ANSWERS)
    assert len(CALLS) > 30
