"""Work on sessions over gRPC, through the runtime's own `grpc://` sessions."""

from __future__ import annotations

import random

import numpy as np

import protos as pb
from bench.soak.client import Client, check_equal
from bench.soak.models import counting_graph, waiting_graph
from bench.soak.record import Failed, Record, WrongAnswer
from bench.soak.work import Work
from runtime.api import OpError, RuntimeSession, SessionOptions, new_session
from server.rest.session_docs import half_plus_two_graph, square_of_y_graph

OPERATION_TIMEOUT_MS = 120_000
STEPS_OF_A_SESSION = 100


class GrpcWork:
    """The kinds of work of one thread, and the session that it keeps open."""

    def __init__(self, seed: int, target: str, record: Record) -> None:
        self._random = random.Random(seed)
        self._target = target
        self._record = record
        self._name = f"soak_grpc_{seed}"
        self._counting: tuple[RuntimeSession, float] | None = None
        self._left = 0
        self.kinds = (
            Work("gRPC: count", 40, self._count),
            Work("gRPC: life", 8, self._life),
            Work("gRPC: large", 2, self._large),
            Work("gRPC: callable", 5, self._callable),
            Work("gRPC: expired", 4, self._expired),
            Work("gRPC: poisoned", 4, self._poisoned),
        )

    def end(self, client: Client) -> None:
        """Close the session that is still open."""
        if self._counting is not None:
            self._counting[0].close()
        self._counting = None

    def _session(self, graph: pb.GraphDef) -> RuntimeSession:
        config = pb.ConfigProto(operation_timeout_in_ms=OPERATION_TIMEOUT_MS)
        session = new_session(SessionOptions(self._target, config))
        try:
            session.create(graph)
        except OpError as error:
            session.close()
            raise Failed(error.code.name, error.message) from None
        return session

    def _run(self, client: Client, session: RuntimeSession, *step: object) -> list[np.ndarray]:
        self._record.count(client.kind)
        try:
            return session.run(*step)  # type: ignore[arg-type] # what `run` takes
        except OpError as error:
            raise Failed(error.code.name, error.message) from None

    def _graph(self) -> pb.GraphDef:
        graph = counting_graph()  # variables of the master service are shared by name
        graph.node[0].attr["shared_name"].s = self._name.encode()
        return graph

    def _count(self, client: Client) -> None:
        if self._counting is not None and self._left == 0:
            session, self._counting = self._counting[0], None
            session.close()
        if self._counting is None:
            session = self._session(self._graph())
            self._run(client, session, {}, [], ["init"])
            self._counting, self._left = (session, 0.0), STEPS_OF_A_SESSION
        session, value = self._counting
        self._left -= 1
        by = float(self._random.randint(-3, 3))
        try:
            (got,) = self._run(client, session, {"by": np.float32(by)}, ["add"])
        except Failed:
            self._counting = None
            session.close()
            raise
        self._counting = (session, value + by)
        check_equal(float(got), value + by, "a variable")

    def _life(self, client: Client) -> None:
        session = self._session(half_plus_two_graph())
        try:
            x = np.float32(self._random.randint(-99, 99))
            (y,) = self._run(client, session, {"x": x}, ["y"])
            check_equal(float(y), x / 2 + 2, "run")
            session.extend(square_of_y_graph())
            (z,) = self._run(client, session, {"x": x}, ["z"])
            check_equal(float(z), (x / 2 + 2) ** 2, "run of the extension")
        finally:
            session.close()

    def _large(self, client: Client) -> None:
        session = self._session(half_plus_two_graph())
        try:
            x = np.arange(self._random.choice((100_000, 1_000_000)), dtype=np.float32)
            (y,) = self._run(client, session, {"x": x}, ["y"])
            if not np.array_equal(y, x / 2 + 2):
                raise WrongAnswer("a large step")
        finally:
            session.close()

    def _callable(self, client: Client) -> None:
        session = self._session(half_plus_two_graph())
        try:
            handle = session.make_callable(pb.CallableOptions(feed=["x:0"], fetch=["y:0"]))
            self._record.count(client.kind)
            (y,) = session.run_callable(handle, [np.float32(4)])
            check_equal(float(y), 4.0, "run_callable")
            session.release_callable(handle)
        finally:
            session.close()

    def _expired(self, client: Client) -> None:
        session = self._session(waiting_graph())
        try:
            self._refused(
                client, session, "DEADLINE_EXCEEDED", {}, ["take"], [],
                pb.RunOptions(timeout_in_ms=5),
            )  # fmt: skip
        finally:
            session.close()

    def _poisoned(self, client: Client) -> None:
        session = self._session(half_plus_two_graph())
        try:
            self._refused(client, session, "INVALID_ARGUMENT", {}, ["y"])
            self._refused(client, session, "NOT_FOUND", {}, ["nothing"])
        finally:
            session.close()

    def _refused(self, client: Client, session: RuntimeSession, code: str, *step: object) -> None:
        try:
            self._run(client, session, *step)
        except Failed as error:
            if error.code == code:
                return
            raise
        raise WrongAnswer(f"a step succeeded instead of {code}")
