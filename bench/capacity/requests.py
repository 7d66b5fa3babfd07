"""The requests of bench.capacity: their tensors, where they go, and what the formula counts."""

from __future__ import annotations

import json
import pathlib
import urllib.request
from typing import NamedTuple

import grpc
import numpy as np

from bench.capacity.formula import BINARY, GRPC, JSON, Work
from bench.engines.model_inputs import batch_of, stored_arrays
from bench.fronts.grpc_load import ANSWER_SECONDS, OPTIONS
from bench.fronts.requests import (
    HttpRequest,
    Inputs,
    infer_binary,
    predict_json,
    predict_rpc,
)
from bench.fronts.run import HALF, Call
from bench.serving import Served

REQUESTS = {JSON: predict_json, BINARY: infer_binary, GRPC: predict_rpc}
SEED = 1


class Body(NamedTuple):
    """What a request says: `rows` of a model's stored inputs, or `numbers` for half_plus_two.

    Numbers are random, or short ones: each is 1.0.
    """

    model: str
    front: str
    numbers: int = 0
    is_short: bool = False
    rows: int = 1

    def __str__(self) -> str:
        kind = " short" if self.is_short else ""
        size = f", {self.numbers:,}{kind} numbers" if self.numbers else ""
        size += f", {self.rows} rows" if self.rows > 1 else ""
        return f"{self.model}{size}, {self.front}"

    def inputs(self, folder: pathlib.Path) -> Inputs:
        """Return the tensors; the folder is the model's."""
        if not self.numbers:
            return batch_of(stored_arrays(folder / "inputs.npz"), self.rows)
        if self.is_short:
            return {"x": np.ones(self.numbers, np.float32)}
        return {"x": np.random.default_rng(SEED).random(self.numbers, np.float32)}


def call_of(body: Body, folder: pathlib.Path, served: Served) -> Call:
    """Return the call of a running server; it is compared with no echo."""
    address = served.grpc.removeprefix("grpc://") if body.front == GRPC else served.http
    return Call(address, REQUESTS[body.front](body.model, body.inputs(folder)), "")


def answer_to(call: Call) -> bytes:
    """Return the body of the answer, or the message.

    Raises:
        urllib.error.HTTPError, grpc.RpcError: It is an error.
    """
    request = call.request
    if isinstance(request, HttpRequest):
        sent = urllib.request.Request(
            call.address + request.path, request.body, dict(request.headers)
        )
        with urllib.request.urlopen(sent, timeout=ANSWER_SECONDS) as response:
            content: bytes = response.read()
        return content
    with grpc.insecure_channel(call.address, options=OPTIONS) as channel:
        message: bytes = channel.unary_unary(request.method)(
            request.message, timeout=ANSWER_SECONDS
        )
    return message


def work_of(body: Body, call: Call, answer: bytes) -> Work:
    """Return what the formula counts of a request, with a step of no time."""
    sent = call.request.body if isinstance(call.request, HttpRequest) else call.request.message
    read, written = map(numbers_in, (sent, answer)) if body.front == JSON else (0, 0)
    return Work(body.front, len(sent), len(answer), read, written, step=0.0)


def numbers_in(text: bytes) -> int:
    """Return how many numbers a body of JSON has."""
    waiting, count = [json.loads(text)], 0
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        else:
            count += isinstance(value, int | float)
    return count


def half_plus_two(front: str, numbers: int, *, is_short: bool = False) -> Body:
    """Return a request whose body may have any size, and whose step takes almost no time."""
    return Body(HALF, front, numbers, is_short)
