"""Infer with KServe's own clients on a server, over REST and gRPC, and print "done".

It runs in an environment with kserve, which needs an older protobuf than the server:

    python kserve_calls.py http://HOST:PORT GRPC_HOST:PORT

The server must serve `half_plus_two` and `echo` (tests/integration/echo_model.py).
"""

from __future__ import annotations

import asyncio
import sys

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig


def request(array, datatype, model, *, is_binary, **parameters):
    tensor = InferInput("x", list(array.shape), datatype)
    tensor.set_data_from_numpy(array, binary_data=is_binary)
    return InferRequest(model, [tensor], "seven", parameters=parameters)


def check(response, expected):
    assert response.id == "seven", response.id
    np.testing.assert_array_equal(response.outputs[0].as_numpy(), expected)


async def infer(client, target, is_grpc):
    array = np.array([1, 2, 5], np.float32)

    async def call(sent):
        if is_grpc:
            return await client.infer(sent)
        return await client.infer(target, sent, model_name=sent.model_name)

    for is_binary in (False, True):
        sent = request(array, "FP32", "half_plus_two", is_binary=is_binary)
        check(await call(sent), [2.5, 3.0, 4.5])
        texts = np.array([b"a", b"bc"], object)
        sent = request(texts, "BYTES", "echo", is_binary=is_binary, signature_name="BYTES")
        found = (await call(sent)).outputs[0].as_numpy().tolist()
        assert [each if isinstance(each, bytes) else each.encode() for each in found] == [
            b"a",
            b"bc",
        ]


async def main(http_address, grpc_address):
    rest = InferenceRESTClient(RESTConfig(protocol="v2"))
    assert await rest.is_server_live(http_address)
    assert await rest.is_server_ready(http_address)
    assert await rest.is_model_ready(http_address, "half_plus_two")
    await infer(rest, http_address, is_grpc=False)
    await rest.close()
    grpc = InferenceGRPCClient(grpc_address)
    assert await grpc.is_server_live()
    assert await grpc.is_server_ready()
    assert await grpc.is_model_ready("half_plus_two")
    await infer(grpc, None, is_grpc=True)
    await grpc.close()
    sys.stdout.write("done\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
