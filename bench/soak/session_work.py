"""Work on sessions over REST: short and long lives, steps of every kind, endings of every kind."""

from __future__ import annotations

import base64
import itertools
import json
import random
import socket
import time
import urllib.parse
from typing import Any

import numpy as np

import protos as pb
from bench.soak.client import JSON, Client, check_close, check_equal
from bench.soak.model_work import base64_floats
from bench.soak.models import counting_graph, powers, products_graph, waiting_graph
from bench.soak.record import WrongAnswer
from bench.soak.work import Work
from runtime.api import tensor_from_proto, tensor_to_proto
from server.rest.session_docs import half_plus_two_graph, square_of_y_graph

PROTOBUF = {"Content-Type": "application/x-protobuf"}
PRODUCTS = 40  # of 128² matrices: long enough for a process of its own
STEPS_OF_A_SESSION = 200  # after which a long-lived session is closed and another opened
LEASE_SECONDS = 0.05


def encoded(graph: pb.GraphDef) -> str:
    """Return a graph as bodies carry it."""
    return base64.b64encode(graph.SerializeToString()).decode()


HALF = {"graph_def": encoded(half_plus_two_graph())}
SQUARE = {"graph_def": encoded(square_of_y_graph())}
COUNTING = {"graph_def": encoded(counting_graph())}
WAITING = {"graph_def": encoded(waiting_graph())}
HEAVY = {"graph_def": encoded(products_graph(PRODUCTS))}
TAKE = {"fetches": ["take"]}


def floats(*data: float) -> dict[str, Any]:
    """Return a vector as answers carry it."""
    return {"dtype": "float32", "shape": [len(data)], "data": list(data)}


def open_session(client: Client, body: dict[str, Any]) -> str:
    """Open a session and return its path."""
    answer = client.call("/v1/sessions", body, status=201)
    return f"/v1/sessions/{answer['session']}"


class SessionWork:
    """The kinds of work of one thread, and the sessions that it keeps open."""

    def __init__(self, seed: int, address: str) -> None:
        self._random = random.Random(seed)
        self._netloc = urllib.parse.urlsplit(address).netloc
        self._numbers = itertools.count()
        self._name = f"soak{seed}"
        self._counting: tuple[str, float] | None = None  # the session, and its variable's value
        self._left = 0
        self._heavy: str | None = None
        self._heavy_x = np.linalg.qr(np.random.default_rng(seed).normal(size=(128, 128)))[0]
        self._heavy_x = self._heavy_x.astype(np.float32)
        self._heavy_y = powers(self._heavy_x, PRODUCTS)
        self.kinds = (
            Work("sessions: count", 50, self._count),
            Work("sessions: life", 10, self._life),
            Work("sessions: of a model", 6, self._of_a_model),
            Work("sessions: callable", 6, self._callable),
            Work("sessions: parts", 6, self._parts),
            Work("sessions: protobuf", 6, self._protobuf),
            Work("sessions: base64", 3, self._base64),
            Work("ended: lease", 2, self._lease),
            Work("ended: cancelled", 3, self._cancelled),
            Work("ended: expired", 3, self._expired),
            Work("ended: client gone", 3, self._gone),
            Work("ended: closed", 2, self._closed),
            Work("poisoned: graphs", 4, self._poisoned),
        )
        self.heavy = (
            Work("clusters: products", 1, self._products),
            Work("low: products", 3, self._products_low),
        )

    def end(self, client: Client) -> None:
        """Close the sessions that are still open."""
        if self._counting is not None:
            client.call(f"{self._counting[0]}:close", {})
        if self._heavy is not None:
            client.call(f"{self._heavy}:close", {})
        self._counting = self._heavy = None

    # --- steps ---------------------------------------------------------------------------------

    def _count(self, client: Client) -> None:
        if self._counting is not None and self._left == 0:
            path, self._counting = self._counting[0], None
            client.call(f"{path}:close", {})
        if self._counting is None:
            path = open_session(client, COUNTING)
            client.call(f"{path}:run", {"targets": ["init"]})
            self._counting, self._left = (path, 0.0), STEPS_OF_A_SESSION
        path, value = self._counting
        self._left -= 1
        by = float(self._random.randint(-3, 3))
        self._counting = (path, value + by)
        body = {"feeds": {"by": by}, "fetches": ["add"]}
        try:
            got = client.call(f"{path}:run", body)
        except Exception:
            self._counting = None  # whether the step has added is not known
            raise
        check_equal(got["outputs"]["add"]["data"], value + by, "a variable")

    def _life(self, client: Client) -> None:
        path = open_session(client, HALF | {"name": "life", "lease_seconds": 60})
        x = float(self._random.randint(-100, 100))
        got = client.call(f"{path}:run", {"feeds": {"x:0": [x]}, "fetches": ["y:0"]})
        check_equal(got, {"outputs": {"y:0": floats(x / 2 + 2)}}, "run")
        got = client.call(f"{path}:extend", SQUARE | {"graph_version": 0})
        check_equal(got, {"graph_version": 1}, "extend")
        got = client.call(f"{path}:run", {"feeds": {"x": [x]}, "fetches": ["z"]})
        check_equal(got["outputs"]["z"]["data"], [(x / 2 + 2) ** 2], "run of the extension")
        client.call(f"{path}:keepAlive", {"lease_seconds": 30})
        status, _, content = client.request("GET", path)
        check_equal((status, json.loads(content)["steps"]), (200, 2), "the session's description")
        client.call(f"{path}:close", {})
        client.refused(f"{path}:run", b'{"fetches": ["y"]}', 410, "CANCELLED")

    def _of_a_model(self, client: Client) -> None:
        path = open_session(client, {"model": "counter"})
        for expected in (1.0, 2.0, 3.0):
            got = client.call(f"{path}:run", {"fetches": ["incr_counter:0"]})
            check_equal(got["outputs"]["incr_counter:0"]["data"], expected, "a model's variable")
        client.call(f"{path}:close", {})

    def _callable(self, client: Client) -> None:
        path = open_session(client, HALF)
        options = {"feed": ["x:0"], "fetch": ["y:0", "half_x:0"]}
        handle = client.call(f"{path}:makeCallable", {"options": options})["handle"]
        for x in (1.0, float(self._random.randint(2, 99))):
            got = client.call(f"{path}:runCallable", {"handle": handle, "feeds": [[x]]})
            check_equal(got, {"outputs": [floats(x / 2 + 2), floats(x / 2)]}, "runCallable")
        client.call(f"{path}:releaseCallable", {"handle": handle})
        body = json.dumps({"handle": handle, "feeds": [[1.0]]}).encode()
        client.refused(f"{path}:runCallable", body, 400, "INVALID_ARGUMENT")
        client.call(f"{path}:close", {})

    def _parts(self, client: Client) -> None:
        path = open_session(client, HALF)
        names = {"feeds": ["x:0"], "fetches": ["half_x:0", "y:0"]}
        setup = client.call(f"{path}:partialRunSetup", names)
        part = {"partial_run_handle": setup["partial_run_handle"]}
        x = float(self._random.randint(-99, 99))
        first = part | {"feeds": {"x:0": [x]}, "fetches": ["half_x:0"]}
        got = client.call(f"{path}:partialRun", first)
        check_equal(got["outputs"], {"half_x:0": floats(x / 2)}, "the first part")
        if self._random.random() < 0.7:  # otherwise the run is left half done
            got = client.call(f"{path}:partialRun", part | {"fetches": ["y:0"]})
            check_equal(got["outputs"], {"y:0": floats(x / 2 + 2)}, "the second part")
        client.call(f"{path}:close", {})

    def _protobuf(self, client: Client) -> None:
        request = pb.CreateSessionRequest(graph_def=half_plus_two_graph())
        content = client.post("/v1/sessions", request.SerializeToString(), PROTOBUF, 201)
        created = pb.CreateSessionResponse.FromString(content)
        path = f"/v1/sessions/{created.session_handle}"
        x = np.array([self._random.randint(-99, 99)], np.float32)
        feed = pb.NamedTensorProto(name="x", tensor=tensor_to_proto(x))
        step = pb.RunStepRequest(feed=[feed], fetch=["y:0"]).SerializeToString()
        answer = pb.RunStepResponse.FromString(client.post(f"{path}:run", step, PROTOBUF))
        check_equal(tensor_from_proto(answer.tensor[0].tensor).tolist(), [x[0] / 2 + 2], "protobuf")
        client.call(f"{path}:close", {})

    def _base64(self, client: Client) -> None:
        path = open_session(client, HALF)
        x = np.arange(self._random.choice((10, 1000, 100_000)), dtype=np.float32)
        body = {"feeds": {"x": base64_floats(x)}, "fetches": ["y"]}
        got = client.call(f"{path}:run?encoding=b64", body)["outputs"]["y"]
        y = np.frombuffer(base64.b64decode(got["b64"]), "<f4")
        if not np.array_equal(y, x / 2 + 2):
            raise WrongAnswer("a step on base64")
        client.call(f"{path}:close", {})

    def _products(self, client: Client) -> None:
        self._run_products(client, {})

    def _products_low(self, client: Client) -> None:
        self._run_products(client, {"priority": "low"})

    def _run_products(self, client: Client, options: dict[str, Any]) -> None:
        if self._heavy is None:
            self._heavy = open_session(client, HEAVY)
        body = {"feeds": {"x": base64_floats(self._heavy_x)}, "fetches": ["y"]} | options
        got = client.call(f"{self._heavy}:run?encoding=b64", body)["outputs"]["y"]
        y = np.frombuffer(base64.b64decode(got["b64"]), "<f4").reshape(got["shape"])
        check_close(y, self._heavy_y, "products")
        if self._random.random() < 0.02:
            path, self._heavy = self._heavy, None
            client.call(f"{path}:close", {})

    # --- endings -------------------------------------------------------------------------------

    def _lease(self, client: Client) -> None:
        path = open_session(client, HALF | {"lease_seconds": LEASE_SECONDS})
        while client.request("GET", path)[0] == 200:
            time.sleep(LEASE_SECONDS)
        client.refused(f"{path}:run", b'{"fetches": ["y"]}', 410, "CANCELLED")

    def _cancelled(self, client: Client) -> None:
        path = open_session(client, WAITING)
        name = f"{self._name}-{next(self._numbers)}"
        other = self._begin(f"{path}:run", TAKE, {"X-Request-Id": name})
        try:
            self._until_running(client, path)
            client.call(f"{path}:cancel", {"request_id": name})
            answer = other.makefile("rb").readline()
            check_equal(answer.split(b" ")[1:2], [b"499"], "a cancelled step")
        finally:
            other.close()
        client.call(f"{path}:close", {})

    def _expired(self, client: Client) -> None:
        path = open_session(client, WAITING)
        body = json.dumps(TAKE | {"options": {"timeout_in_ms": 5}}).encode()
        client.refused(f"{path}:run", body, 504, "DEADLINE_EXCEEDED")
        client.call(f"{path}:close", {})

    def _gone(self, client: Client) -> None:
        path = open_session(client, WAITING)
        other = self._begin(f"{path}:run", TAKE, {})
        try:
            self._until_running(client, path)
        finally:
            other.close()
        while json.loads(client.request("GET", path)[2])["state"] == "RUNNING":
            time.sleep(0.001)
        client.call(f"{path}:close", {})

    def _closed(self, client: Client) -> None:
        path = open_session(client, WAITING)
        other = self._begin(f"{path}:run", TAKE, {})
        try:
            self._until_running(client, path)
            client.call(f"{path}:close", {})
            answer = other.makefile("rb").readline()
            check_equal(answer.split(b" ")[1:2], [b"499"], "a step of a closed session")
        finally:
            other.close()

    def _poisoned(self, client: Client) -> None:
        body: dict[str, Any] = self._random.choice(
            (
                {"graph_def": "AAAA"},
                {"graph_def": "!"},
                {"graph_def": HALF["graph_def"], "config": {"nothing": 1}},
                {"graph_def": HALF["graph_def"][:-8]},
                {"graph": ""},
            )
        )
        client.refused("/v1/sessions", json.dumps(body).encode(), 400, "INVALID_ARGUMENT")

    def _begin(self, path: str, body: Any, headers: dict[str, str]) -> socket.socket:
        """Send a request on a connection of its own, and return the connection."""
        host, port = self._netloc.split(":")
        content = json.dumps(body).encode()
        lines = "".join(f"{key}: {value}\r\n" for key, value in {**JSON, **headers}.items())
        head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(content)}\r\n{lines}"
        opened = socket.create_connection((host, int(port)), timeout=60)
        opened.sendall(f"{head}\r\n".encode() + content)
        return opened

    @staticmethod
    def _until_running(client: Client, path: str) -> None:
        while json.loads(client.request("GET", path)[2])["state"] != "RUNNING":
            time.sleep(0.001)
