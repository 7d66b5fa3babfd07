"""What a closed session held is free at once, without the garbage collector, also after errors."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from runtime.sessions.direct.direct_session import DirectSession
from tests.integration.rest_server import HALF_PLUS_TWO, RUN_Y, RestServer, with_server

pytestmark = pytest.mark.usefixtures("both_ways")

WRONG = {"feeds": {"x:0": [[1.0], [2.0, 3.0]]}, "fetches": ["y:0"]}
UNKNOWN = {"fetches": ["unknown:0"]}
FAILING = {"fetches": ["y:0"]}  # the placeholder is not fed


def sessions() -> int:
    return sum(type(each) is DirectSession for each in gc.get_objects())


@pytest.mark.parametrize("step", [RUN_Y, WRONG, UNKNOWN, FAILING])
def test_a_closed_session_is_freed(step: dict[str, Any]) -> None:
    async def scenario(server: RestServer) -> None:
        await server.post(f"{await server.create(HALF_PLUS_TWO)}:run", RUN_Y)
        gc.collect()
        before = sessions()
        gc.disable()
        try:
            for _ in range(3):
                session = await server.create(HALF_PLUS_TWO)
                await server.post(f"{session}:run", step)
                await server.post(f"{session}:run", step)
                assert (await server.post(f"{session}:close")).status_code == 200
            assert sessions() <= before + 1  # the last request may still be ending
        finally:
            gc.enable()

    with_server(scenario)
