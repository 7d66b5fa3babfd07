"""The Open Inference Protocol over gRPC: every call, typed and raw contents, streams, errors."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import grpc
import numpy as np
import pytest

import protos as pb
from server.inference_protocol.service import SHARED_MEMORY
from server.models.inference_service import InferenceService
from server.steps.step_request import StepRequest
from server.steps.step_runner import StepRunner
from tests.integration.echo_model import write_echo_model
from tests.integration.rpc_server import RpcServer, with_rpc
from tests.integration.test_inference_protocol_rest import raw_bytes

api = pb.inference
SERVICE = "/inference.GRPCInferenceService/"
INVALID, NOT_FOUND = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND
# The field of typed contents, and elements at the ends of the range.
CONTENTS: dict[str, tuple[str, list[Any]]] = {
    "BOOL": ("bool_contents", [True, False]),
    "INT8": ("int_contents", [-128, 127]),
    "INT16": ("int_contents", [-(2**15), 2**15 - 1]),
    "INT32": ("int_contents", [-(2**31), 2**31 - 1]),
    "INT64": ("int64_contents", [-(2**63), 2**63 - 1]),
    "UINT8": ("uint_contents", [0, 255]),
    "UINT16": ("uint_contents", [0, 65535]),
    "UINT32": ("uint_contents", [0, 2**32 - 1]),
    "UINT64": ("uint64_contents", [0, 2**64 - 1]),
    "FP32": ("fp32_contents", [0.5, float("inf")]),
    "FP64": ("fp64_contents", [0.1, -1.5]),
    "BYTES": ("bytes_contents", [b"a", b"\xff\x00"]),
}


def infer_request(
    model: str = "half_plus_two",
    datatype: str = "FP32",
    signature: str | None = None,
    *,
    raw: bytes | None = None,
    items: list[Any] | None = None,
    shape: tuple[int, ...] = (2,),
) -> Any:
    request = api.ModelInferRequest(model_name=model, id="seven")
    tensor = request.inputs.add(name="x", datatype=datatype, shape=shape)
    if raw is not None:
        request.raw_input_contents.append(raw)
    if items is not None:
        field = CONTENTS[datatype][0]
        getattr(tensor.contents, field).extend(items)
    if signature is not None:
        request.parameters["signature_name"].string_param = signature
    return request


async def infer(server: RpcServer, request: Any, **options: Any) -> Any:
    return await server.call(SERVICE + "ModelInfer", request, api.ModelInferResponse, **options)


def echo(folder: Any) -> list[dict[str, str]]:
    return [{"name": "echo", "base_path": str(write_echo_model(folder / "echo"))}]


def test_every_datatype_passes_unchanged_as_contents_and_raw(tmp_path: Any) -> None:
    async def scenario(server: RpcServer) -> None:
        for datatype, (field, items) in CONTENTS.items():
            request = infer_request("echo", datatype, datatype, items=items)
            response = await infer(server, request)
            (output,) = response.outputs
            assert (output.name, output.datatype, list(output.shape)) == ("y", datatype, [2])
            assert list(getattr(output.contents, field)) == items, datatype
            assert not response.raw_output_contents
            assert (response.id, response.model_version) == ("seven", "1")
        for datatype in (*CONTENTS, "FP16", "BF16"):
            raw = raw_bytes(datatype)
            response = await infer(server, infer_request("echo", datatype, datatype, raw=raw))
            assert list(response.raw_output_contents) == [raw], datatype
            assert not response.outputs[0].HasField("contents")

    with_rpc(scenario, models=echo(tmp_path))


def test_a_parameter_chooses_the_form_of_the_response() -> None:
    async def scenario(server: RpcServer) -> None:
        request = infer_request(items=[1.0, 2.0])
        request.parameters["binary_data_output"].bool_param = True
        raw = np.array([2.5, 3.0], "<f4").tobytes()
        assert list((await infer(server, request)).raw_output_contents) == [raw]
        request = infer_request(raw=np.array([1, 2], "<f4").tobytes())
        request.parameters["binary_data_output"].bool_param = False
        response = await infer(server, request)
        assert list(response.outputs[0].contents.fp32_contents) == [2.5, 3.0]

    with_rpc(scenario)


def test_priority_and_deadlines_reach_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[StepRequest] = []
    run = StepRunner.run

    async def noted(self: StepRunner, session: Any, request: StepRequest, **rest: Any) -> Any:
        steps.append(request)
        return await run(self, session, request, **rest)

    monkeypatch.setattr(StepRunner, "run", noted)
    monkeypatch.setattr(InferenceService, "predict_short", lambda *_: None)

    async def scenario(server: RpcServer) -> None:
        await infer(server, infer_request(items=[1, 2]), metadata=(("x-priority", "low"),))
        assert steps[-1].priority == "low" and 0 < steps[-1].timeout_ms < 70_000
        request = infer_request(items=[1, 2])
        request.parameters["priority"].uint64_param = 2
        request.parameters["timeout"].int64_param = 2_500_000
        await infer(server, request)
        assert (steps[-1].priority, steps[-1].timeout_ms) == (2, 2500)
        request.parameters["priority"].string_param = "nope"
        await server.refused(SERVICE + "ModelInfer", request, INVALID, "Unknown priority 'nope'")

    with_rpc(scenario)


def test_what_does_not_fit_is_refused(tmp_path: Any) -> None:
    async def scenario(server: RpcServer) -> None:
        async def refused(request: Any, text: str, code: Any = INVALID) -> None:
            await server.refused(SERVICE + "ModelInfer", request, code, text)

        await refused(infer_request("nope", items=[1, 2]), "Latest(nope)", NOT_FOUND)
        await refused(infer_request("echo", items=[1]), "Expected 2 elements for shape [2], got 1")
        await refused(infer_request("echo", raw=b"123"), "Expected 8 bytes for shape [2]")
        both = infer_request("echo", items=[1, 2], raw=b"12345678")
        await refused(both, "expected either contents or raw_input_contents, got both")
        two = infer_request("echo", raw=b"12345678")
        two.raw_input_contents.append(b"")
        await refused(two, "for each of 1 inputs, got 2")
        wrong = infer_request("echo", "INT8", "INT8", items=[1, 128])
        await refused(wrong, "128 is out of range for int8: -128 to 127")
        wrong = infer_request("echo", "UINT8", "UINT8", items=[256, 1])
        await refused(wrong, "256 is out of range for uint8: 0 to 255")
        wrong = infer_request("echo", "FP32", "INT8", items=[1, 2])
        await refused(wrong, "is FP32, but the model expects INT8")
        wrong = infer_request("echo", "FP32")
        wrong.inputs[0].contents.int_contents.extend([1, 2])
        await refused(wrong, "Expected elements in contents.fp32_contents, got int_contents")
        wrong = infer_request("echo", "FP16", "FP16")
        await refused(wrong, "must be in raw_input_contents")
        wrong = infer_request("echo", items=[1, 2], shape=(-2,))
        await refused(wrong, "non-negative")
        shared = infer_request("echo")
        shared.inputs[0].parameters["shared_memory_region"].string_param = "r"
        await refused(shared, "is in shared memory", grpc.StatusCode.UNIMPLEMENTED)

    with_rpc(scenario, models=echo(tmp_path))


def test_a_stream_goes_on_after_an_error() -> None:
    async def scenario(server: RpcServer) -> None:
        call = server.channel.stream_stream(SERVICE + "ModelStreamInfer")
        requests = [
            infer_request(items=[1, 2]).SerializeToString(),
            infer_request("nope", items=[1, 2]).SerializeToString(),
            infer_request(items=[3, 4]).SerializeToString(),
        ]
        found = [
            api.ModelStreamInferResponse.FromString(each)
            async for each in call(iter(requests), timeout=60)
        ]
        assert [each.error_message for each in found] == [
            "", "Servable not found for request: Latest(nope)", "",
        ]  # fmt: skip
        assert all(each.infer_response.id == "seven" for each in found)
        outputs = [list(found[i].infer_response.outputs[0].contents.fp32_contents) for i in (0, 2)]
        assert outputs == [[2.5, 3.0], [3.5, 4.0]]
        assert found[0].infer_response.parameters["triton_final_response"].bool_param

    with_rpc(scenario)


def test_health_descriptions_and_statistics() -> None:
    async def scenario(server: RpcServer) -> None:
        async def call(method: str, **fields: Any) -> Any:
            request = getattr(api, f"{method}Request")(**fields)
            answer = getattr(api, f"{method}Response")
            return await server.call(SERVICE + method, request, answer)

        assert (await call("ServerLive")).live
        assert (await call("ServerReady")).ready
        assert (await call("ModelReady", name="half_plus_two", version="1")).ready
        missing = api.ModelReadyRequest(name="nope")
        await server.refused(SERVICE + "ModelReady", missing, NOT_FOUND, "of model nope")
        assert (await call("ServerMetadata")).name == "runstep"
        metadata = await call("ModelMetadata", name="half_plus_two")
        assert (metadata.platform, list(metadata.versions)) == ("tensorflow_savedmodel", ["1"])
        assert list(metadata.inputs[0].shape) == [-1]
        config = (await call("ModelConfig", name="half_plus_two")).config
        assert config.output[0].data_type == api.TYPE_FP32
        await infer(server, infer_request(items=[1, 2]))
        (stats,) = (await call("ModelStatistics", name="half_plus_two")).model_stats
        assert (stats.inference_count, stats.inference_stats.success.count) == (2, 1)
        (entry,) = (await call("RepositoryIndex", ready=True)).models
        assert (entry.name, entry.version, entry.state) == ("half_plus_two", "1", "READY")

    with_rpc(scenario)


def test_administration() -> None:
    level = logging.getLogger().level

    async def scenario(server: RpcServer) -> None:
        unload = api.RepositoryModelUnloadRequest(model_name="half_plus_two")
        load = api.RepositoryModelLoadRequest(model_name="half_plus_two")
        await server.bytes(SERVICE + "RepositoryModelUnload", unload)
        request = infer_request(items=[1, 2])
        await server.refused(SERVICE + "ModelInfer", request, NOT_FOUND, "Latest(half_plus_two)")
        await server.bytes(SERVICE + "RepositoryModelLoad", load)
        assert (await infer(server, request)).model_version == "1"
        load.parameters["config"].string_param = "{}"
        unimplemented = grpc.StatusCode.UNIMPLEMENTED
        await server.refused(
            SERVICE + "RepositoryModelLoad", load, unimplemented, "from its folder"
        )
        logs = api.LogSettingsRequest()
        logs.settings["log_verbose_level"].uint32_param = 1
        logs.settings["log_info"].bool_param = True
        found = await server.call(SERVICE + "LogSettings", logs, api.LogSettingsResponse)
        assert found.settings["log_verbose_level"].uint32_param == 1
        assert logging.getLogger().level == logging.DEBUG
        logs.settings["empty"].SetInParent()
        await server.refused(SERVICE + "LogSettings", logs, INVALID, "'empty' has no value")
        traces = api.TraceSettingRequest()
        found = await server.call(SERVICE + "TraceSetting", traces, api.TraceSettingResponse)
        assert list(found.settings["trace_level"].value) == ["OFF"]
        traces.settings["trace_level"].value.append("TENSORS")
        await server.refused(SERVICE + "TraceSetting", traces, unimplemented, "no trace files")

    try:
        with_rpc(scenario, admin={"enabled": True})
    finally:
        logging.getLogger().setLevel(level)


def test_without_administration_nothing_can_be_changed() -> None:
    async def scenario(server: RpcServer) -> None:
        logs = api.LogSettingsRequest()
        logs.settings["log_info"].bool_param = True
        traces = api.TraceSettingRequest()
        traces.settings["trace_level"].value.append("OFF")
        for name, request in {
            "RepositoryModelUnload": api.RepositoryModelUnloadRequest(model_name="half_plus_two"),
            "RepositoryModelLoad": api.RepositoryModelLoadRequest(model_name="half_plus_two"),
            "LogSettings": logs,
            "TraceSetting": traces,
        }.items():
            await server.refused(
                SERVICE + name,
                request,
                grpc.StatusCode.PERMISSION_DENIED,
                "admin.enabled is false",
            )

    with_rpc(scenario)


def test_shared_memory_is_off() -> None:
    async def scenario(server: RpcServer) -> None:
        for kind in ("SystemSharedMemory", "CudaSharedMemory"):
            request = getattr(api, f"{kind}RegisterRequest")(name="r")
            await server.refused(
                f"{SERVICE}{kind}Register", request, grpc.StatusCode.UNIMPLEMENTED, SHARED_MEMORY
            )
            for verb in ("Status", "Unregister"):
                request = getattr(api, f"{kind}{verb}Request")(name="r")
                assert await server.bytes(f"{SERVICE}{kind}{verb}", request) == b""

    with_rpc(scenario)


def test_a_large_message_is_decoded_and_encoded_on_other_threads(tmp_path: Any) -> None:
    async def scenario(server: RpcServer) -> None:
        raw = np.arange(500_000, dtype="<f4").tobytes()
        requests = [infer_request("echo", raw=raw, shape=(500_000,)) for _ in range(2)]
        responses = await asyncio.gather(*(infer(server, request) for request in requests))
        assert all(response.raw_output_contents[0] == raw for response in responses)
        items = [0.5] * 50_000
        response = await infer(server, infer_request("echo", items=items, shape=(50_000,)))
        assert list(response.outputs[0].contents.fp32_contents) == items

    with_rpc(scenario, models=echo(tmp_path))
