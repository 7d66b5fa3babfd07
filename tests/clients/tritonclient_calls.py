"""Call every method of tritonclient's four clients on a server, and print their names as JSON.

It runs in an environment with tritonclient, which needs an older protobuf than the server:

    python tritonclient_calls.py HTTP_HOST:PORT GRPC_HOST:PORT

The server must serve `half_plus_two` and `echo` (tests/integration/echo_model.py) and have
`admin.enabled`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import queue
import sys

import ml_dtypes
import numpy as np
import tritonclient.grpc
import tritonclient.grpc.aio
import tritonclient.http
import tritonclient.http.aio
from tritonclient.utils import InferenceServerException

NOT_CALLS = {"plugin", "register_plugin", "unregister_plugin"}  # of the client, not of the server
ARRAYS = {
    "BOOL": np.array([[True, False]]),
    "UINT8": np.array([[0, 255]], np.uint8),
    "UINT16": np.array([[0, 65535]], np.uint16),
    "UINT32": np.array([[0, 2**32 - 1]], np.uint32),
    "UINT64": np.array([[0, 2**64 - 1]], np.uint64),
    "INT8": np.array([[-128, 127]], np.int8),
    "INT16": np.array([[-(2**15), 2**15 - 1]], np.int16),
    "INT32": np.array([[-(2**31), 2**31 - 1]], np.int32),
    "INT64": np.array([[-(2**63), 2**63 - 1]], np.int64),
    "FP16": np.array([[0.5, np.inf]], np.float16),
    "BF16": np.array([[0.5, 3]], ml_dtypes.bfloat16),
    "FP32": np.array([[0.1, np.nan]], np.float32),
    "FP64": np.array([[0.1, -np.inf]]),
    "BYTES": np.array([["ä".encode(), b"\xff\x00"]], object),
}


class Client:
    """One of the four clients; `called` are the names of the methods that were called."""

    def __init__(self, module, address):
        self.module = module
        self.is_grpc = "grpc" in module.__name__
        self.is_asynchronous = module.__name__.endswith("aio")
        self.client = module.InferenceServerClient(address)
        self.called = set()

    async def call(self, name, *arguments, **options):
        self.called.add(name)
        result = getattr(self.client, name)(*arguments, **options)
        return await result if inspect.isawaitable(result) else result

    async def description(self, name, *arguments, **options):
        """The result as JSON, whichever form the client has."""
        if self.is_grpc:
            options["as_json"] = True
        return await self.call(name, *arguments, **options)

    async def refused(self, text, name, *arguments, **options):
        try:
            await self.call(name, *arguments, **options)
        except InferenceServerException as error:
            assert text in error.message(), error.message()
        else:
            raise AssertionError(f"{name} was not refused")

    def x(self, array, datatype="FP32"):
        tensor = self.module.InferInput("x", list(array.shape), datatype)
        tensor.set_data_from_numpy(array)
        return tensor

    def uncalled(self):
        methods = inspect.getmembers(self.module.InferenceServerClient, callable)
        return {name for name, _ in methods if not name.startswith("_")} - NOT_CALLS - self.called


async def describe(client):
    assert await client.call("is_server_live")
    assert await client.call("is_server_ready")
    assert await client.call("is_model_ready", "half_plus_two")
    assert await client.call("is_model_ready", "half_plus_two", "1")
    if client.is_grpc:
        await client.refused("of model nope", "is_model_ready", "nope")
    else:
        assert not await client.call("is_model_ready", "nope")
    metadata = await client.description("get_server_metadata")
    assert metadata["name"] == "runstep" and "classification" in metadata["extensions"]
    metadata = await client.description("get_model_metadata", "half_plus_two")
    assert metadata["platform"] == "tensorflow_savedmodel"
    (tensor,) = metadata["inputs"]
    assert (tensor["name"], tensor["datatype"]) == ("x", "FP32")
    config = await client.description("get_model_config", "half_plus_two")
    config = config.get("config", config)
    assert config["input"][0]["data_type"] == "TYPE_FP32" and config["backend"] == "tensorflow"
    await client.refused("Latest(nope)", "get_model_metadata", "nope")


async def infer(client):
    array = np.array([1, 2, 5], np.float32)
    result = await client.call("infer", "half_plus_two", [client.x(array)], request_id="seven")
    assert result.as_numpy("y").tolist() == [2.5, 3.0, 4.5]
    response = result.get_response(as_json=True) if client.is_grpc else result.get_response()
    assert response["id"] == "seven" and response["model_name"] == "half_plus_two"
    for datatype, sent in ARRAYS.items():
        result = await client.call(
            "infer",
            "echo",
            [client.x(sent, datatype)],
            outputs=[client.module.InferRequestedOutput("y")],
            priority=1,
            timeout=30_000_000,
            parameters={"signature_name": datatype},
        )
        np.testing.assert_array_equal(result.as_numpy("y"), sent, datatype)
    options = {} if client.is_grpc else {"binary_data": False}
    output = client.module.InferRequestedOutput("y", class_count=2, **options)
    result = await client.call("infer", "half_plus_two", [client.x(array)], outputs=[output])
    classes = [each if isinstance(each, str) else each.decode() for each in result.as_numpy("y")]
    assert classes == ["4.500000:2", "3.000000:1"]
    await client.refused(
        "Unknown priority 9", "infer", "half_plus_two", [client.x(array)], priority=9
    )
    if client.is_grpc:
        for compression in ("gzip", "deflate"):
            result = await client.call(
                "infer", "half_plus_two", [client.x(array)], compression_algorithm=compression
            )
            assert result.as_numpy("y").tolist() == [2.5, 3.0, 4.5]
        return
    tensor = client.module.InferInput("x", [3], "FP32")
    tensor.set_data_from_numpy(array, binary_data=False)
    output = client.module.InferRequestedOutput("y", binary_data=False)
    result = await client.call("infer", "half_plus_two", [tensor], outputs=[output])
    assert result.as_numpy("y").tolist() == [2.5, 3.0, 4.5]
    large = np.ones(10_000, np.float32)
    for compression in ("gzip", "deflate"):
        result = await client.call(
            "infer",
            "half_plus_two",
            [client.x(large)],
            request_compression_algorithm=compression,
            response_compression_algorithm=compression,
        )
        assert result.as_numpy("y").tolist() == [2.5] * 10_000
    client.called |= {"generate_request_body", "parse_response_body"}
    body, length = client.module.InferenceServerClient.generate_request_body([client.x(array)])
    assert 0 < length < len(body)
    response = b'{"outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[2]}]}'
    parsed = client.module.InferenceServerClient.parse_response_body(response)
    assert parsed.as_numpy("y").tolist() == [2.0]


async def infer_asynchronously(client):
    array = np.array([1, 2, 5], np.float32)
    if client.is_asynchronous:
        if client.is_grpc:

            async def requests():
                yield {"model_name": "half_plus_two", "inputs": [client.x(array)]}
                yield {"model_name": "nope", "inputs": [client.x(array)]}
                yield {"model_name": "half_plus_two", "inputs": [client.x(array)]}

            client.called.add("stream_infer")
            found = [each async for each in client.client.stream_infer(requests())]
            _check_stream(found)
        return
    if not client.is_grpc:
        request = await client.call("async_infer", "half_plus_two", [client.x(array)])
        assert request.get_result().as_numpy("y").tolist() == [2.5, 3.0, 4.5]
        return
    answers = queue.Queue()

    def note(result, error):
        answers.put((result, error))

    await client.call("async_infer", "half_plus_two", [client.x(array)], note)
    result, error = answers.get(timeout=30)
    assert error is None and result.as_numpy("y").tolist() == [2.5, 3.0, 4.5]
    await client.call("start_stream", note)
    for model in ("half_plus_two", "nope", "half_plus_two"):
        await client.call("async_stream_infer", model, [client.x(array)])
    found = [answers.get(timeout=30) for _ in range(3)]
    await client.call("stop_stream")
    _check_stream(found)


def _check_stream(found):
    assert len(found) == 3
    for result, error in (found[0], found[2]):
        assert error is None and result.as_numpy("y").tolist() == [2.5, 3.0, 4.5]
        assert result.get_response().parameters["triton_final_response"].bool_param
    assert "Latest(nope)" in found[1][1].message()


async def administer(client):
    stats = await client.description("get_inference_statistics", "half_plus_two")
    assert int(stats["model_stats"][0]["execution_count"]) > 0
    index = await client.description("get_model_repository_index")
    names = {each["name"] for each in (index["models"] if client.is_grpc else index)}
    assert names == {"half_plus_two", "echo"}
    await client.call("unload_model", "echo")
    await client.refused("echo", "get_model_metadata", "echo")
    await client.call("load_model", "echo")
    assert await client.call("is_model_ready", "echo")
    await client.refused("from its folder", "load_model", "echo", config="{}")
    await client.refused("echo2", "load_model", "echo2")
    settings = await client.description("get_log_settings")
    assert "log_info" in settings.get("settings", settings)
    await client.call("update_log_settings", {"log_info": True, "log_verbose_level": 0})
    await client.refused("Unknown settings", "update_log_settings", {"nope": True})
    settings = await client.description("get_trace_settings")
    settings = settings.get("settings", settings)
    assert settings["trace_level"] in (["OFF"], {"value": ["OFF"]})
    await client.call("update_trace_settings", settings={"trace_level": ["OFF"]})
    await client.call("update_trace_settings", "echo", settings={"trace_level": None})
    await client.refused("trace", "update_trace_settings", settings={"trace_level": ["TENSORS"]})


async def share_memory(client):
    for kind, arguments in (("system", ("/key", 64)), ("cuda", (b"aGFuZGxl", 0, 64))):
        await client.call(f"unregister_{kind}_shared_memory")
        text = "does not use shared memory"
        await client.refused(text, f"register_{kind}_shared_memory", "region", *arguments)
        regions = await client.description(f"get_{kind}_shared_memory_status")
        assert regions in ([], {}), regions


async def run(module, address):
    client = Client(module, address)
    for part in (describe, infer, infer_asynchronously, administer, share_memory):
        await part(client)
    await client.call("close")
    assert not client.uncalled(), client.uncalled()
    return sorted(client.called)


def main(http_address, grpc_address):
    modules = (
        (tritonclient.http, http_address),
        (tritonclient.http.aio, http_address),
        (tritonclient.grpc, grpc_address),
        (tritonclient.grpc.aio, grpc_address),
    )
    called = {module.__name__: asyncio.run(run(module, address)) for module, address in modules}
    sys.stdout.write(json.dumps(called))


if __name__ == "__main__":
    main(*sys.argv[1:])
