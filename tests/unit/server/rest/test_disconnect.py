import asyncio

import pytest

from runtime.framework.cancellation import CancellationManager
from server.rest import disconnect
from server.rest.disconnect import DisconnectWatch


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(disconnect, "WATCH_AFTER_SECONDS", 0)


def test_a_client_that_goes_away_cancels():
    cancellation = CancellationManager()
    cancelled = asyncio.Event()
    messages = [{"type": "http.request"}, {"type": "http.disconnect"}]

    async def receive():
        return messages.pop(0)

    async def scenario():
        cancellation.add_callback(cancelled.set)
        with DisconnectWatch(receive, cancellation):
            await cancelled.wait()

    asyncio.run(scenario())
    assert cancellation.copy_of_error().message == "The client went away."


def test_nobody_watches_after_the_step():
    cancellation = CancellationManager()
    watched = asyncio.Event()
    tasks = []

    async def receive():
        tasks.append(asyncio.current_task())
        watched.set()
        await asyncio.Event().wait()

    async def scenario():
        with DisconnectWatch(receive, cancellation):
            await watched.wait()
        await asyncio.wait(tasks)

    asyncio.run(scenario())
    assert tasks[0].cancelled() and not cancellation.is_cancelled
