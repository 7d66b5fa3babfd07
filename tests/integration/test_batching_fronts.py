"""Batching over every front: REST, gRPC Predict and the Open Inference Protocol of both ports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest

import protos as pb
from runtime.api import tensor_from_proto
from tests.integration.rpc_server import PREDICTION, RpcServer, predict_request, with_rpc
from tests.integration.test_batching import (
    HALF_PLUS_TWO,
    LATE,
    PREDICT,
    PROCESSED_ROWS,
    RUNS,
    metric,
    parameters,
    version_folder,
)

MODEL = "half_plus_two"
HTTP_INFER = f"/v2/models/{MODEL}/infer"
RPC_INFER = "/inference.GRPCInferenceService/ModelInfer"


class Outcome(NamedTuple):
    """The values of a response, or what says that there are none."""

    values: list[float]
    status: int | grpc.StatusCode = 200


async def rest(server: RpcServer, rows: list[float], priority: str, ms: int) -> Outcome:
    headers = {"X-Priority": priority} | ({"X-Timeout-Ms": str(ms)} if ms else {})
    answer = await server.rest.post(PREDICT, {"instances": rows}, headers=headers)
    return Outcome(answer.json().get("predictions", []), answer.status_code)


async def http_infer(server: RpcServer, rows: list[float], priority: str, ms: int) -> Outcome:
    tensor = {"name": "x", "shape": [len(rows)], "datatype": "FP32", "data": rows}
    body = {"inputs": [tensor], "parameters": {"priority": priority, "timeout": ms * 1000}}
    answer = await server.rest.post(HTTP_INFER, body)
    outputs = answer.json().get("outputs", [{"data": []}])
    return Outcome(outputs[0]["data"], answer.status_code)


async def rpc_predict(server: RpcServer, rows: list[float], priority: str, ms: int) -> Outcome:
    request = predict_request(MODEL, x=np.array(rows, np.float32))
    metadata, timeout = (("x-priority", priority),), ms / 1000 or 60
    try:
        answer = await server.call(
            PREDICTION + "Predict",
            request,
            pb.serving.PredictResponse,
            metadata=metadata,
            timeout=timeout,
        )
    except grpc.aio.AioRpcError as error:
        return Outcome([], error.code())
    return Outcome(tensor_from_proto(answer.outputs["y"]).tolist())


async def rpc_infer(server: RpcServer, rows: list[float], priority: str, ms: int) -> Outcome:
    request = pb.inference.ModelInferRequest(model_name=MODEL)
    tensor = request.inputs.add(name="x", datatype="FP32", shape=[len(rows)])
    tensor.contents.fp32_contents.extend(rows)
    request.parameters["priority"].string_param = priority
    request.parameters["timeout"].int64_param = ms * 1000
    try:
        answer = await server.call(RPC_INFER, request, pb.inference.ModelInferResponse)
    except grpc.aio.AioRpcError as error:
        return Outcome([], error.code())
    return Outcome(list(answer.outputs[0].contents.fp32_contents))


Front = Callable[[RpcServer, list[float], str, int], Coroutine[Any, Any, Outcome]]
FRONTS: tuple[Front, ...] = (rest, http_infer, rpc_predict, rpc_infer)
each_front = pytest.mark.parametrize("front", FRONTS)


def computed(rows: list[float]) -> Outcome:
    return Outcome([row / 2 + 2 for row in rows])


async def until_queued(server: RpcServer, count: int = 1) -> None:
    """Wait until so many steps have come to a queue."""
    name = ":tensorflow:serving:batching_session:input_batch_size_count"
    while await metric(server.rest, name) < count:
        await asyncio.sleep(0)


async def until_idle(server: RpcServer) -> None:
    while server.rest.services.lifecycle.in_flight:
        await asyncio.sleep(0)


def test_callers_of_all_fronts_are_one_batch(tmp_path: Path) -> None:
    async def scenario(server: RpcServer) -> None:
        calls = [front(server, [float(at)], "normal", 0) for at, front in enumerate(FRONTS)]
        found = await asyncio.gather(*calls)
        assert found == [computed([float(at)]) for at in range(len(FRONTS))]
        assert await metric(server.rest, RUNS) == 1
        assert await metric(server.rest, PROCESSED_ROWS) == len(FRONTS)

    with_rpc(scenario, **parameters(tmp_path, f"max_batch_size {{ value: 4 }} {LATE}"))


@each_front
def test_low_priority_joins_a_normal_batch_in_place_of_padding_only(
    tmp_path: Path, front: Front
) -> None:
    text = f"max_batch_size {{ value: 4 }} allowed_batch_sizes: 4 {LATE}"

    async def scenario(server: RpcServer) -> None:
        low = asyncio.create_task(front(server, [2.0], "low", 0))
        await until_queued(server)
        full = await asyncio.gather(
            *(each(server, [4.0] * 2, "normal", 0) for each in (rest, rpc_predict))
        )
        assert full == [computed([4.0] * 2)] * 2
        assert not low.done() and await metric(server.rest, RUNS) == 1
        # Three rows and three do not fit into one batch, so that the first has a slot for padding.
        rows = ([0.0] * 3, [1.0] * 3, [6.0])
        found = await asyncio.gather(*(rest(server, each, "normal", 0) for each in rows))
        assert found == [computed(each) for each in rows]
        assert await low == computed([2.0])
        assert await metric(server.rest, RUNS) == 3

    with_rpc(scenario, **parameters(tmp_path, text))


@each_front
def test_a_full_queue_is_unavailable_and_a_deadline_leaves_it(tmp_path: Path, front: Front) -> None:
    text = f"max_batch_size {{ value: 4 }} max_enqueued_batches {{ value: 1 }} {LATE}"
    is_http = front in (rest, http_infer)

    async def scenario(server: RpcServer) -> None:
        rows = [1.0] * 3
        waits = asyncio.create_task(front(server, rows, "normal", 2000))
        await until_queued(server)
        for other in FRONTS:
            refused = await other(server, rows, "normal", 0)
            is_of_http = other in (rest, http_infer)
            assert refused.status == (503 if is_of_http else grpc.StatusCode.UNAVAILABLE)
        late = await waits
        assert late.status == (504 if is_http else grpc.StatusCode.DEADLINE_EXCEEDED)
        await until_idle(server)
        found = await asyncio.gather(
            front(server, rows, "normal", 0), front(server, [8.0], "normal", 0)
        )
        assert found == [computed(rows), computed([8.0])]
        assert await metric(server.rest, PROCESSED_ROWS) == 4

    with_rpc(scenario, **parameters(tmp_path, text))


def test_models_of_a_file_have_the_servers_parameters_or_their_own(tmp_path: Path) -> None:
    own = version_folder(tmp_path)
    (own / "assets.extra").mkdir(exist_ok=True)
    (own / "assets.extra" / "batching_params.pbtxt").write_text("max_batch_size { value: 1 }")
    config = tmp_path / "models.config"
    bases = {"common": HALF_PLUS_TWO["base_path"], "own": str(own.parent)}
    entries = "".join(
        f'config {{ name: "{name}" base_path: "{path}" model_platform: "tensorflow" }}\n'
        for name, path in bases.items()
    )
    config.write_text(f"model_config_list {{ {entries} }}")
    settings = parameters(tmp_path, "max_batch_size { value: 2 }")
    settings["batching"]["per_model_parameters"] = True

    async def scenario(server: RpcServer) -> None:
        for name, most in (("common", 2), ("own", 1)):
            for size, status in ((most, 200), (most + 1, 400)):
                answer = await server.rest.post(
                    f"/v1/models/{name}:predict", {"instances": [1.0] * size}
                )
                assert answer.status_code == status, answer.text
            assert f"maximum input batch size {most}" in answer.json()["error"]

    with_rpc(scenario, **settings | {"models": [], "model_config_file": str(config)})
