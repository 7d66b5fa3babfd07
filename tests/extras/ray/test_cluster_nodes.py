"""How the directory looks at the ports of nodes."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Iterator

from runtime.ray_api import Node
from server.ray_sessions.cluster_nodes import ClusterNodes


def node_at(port: int) -> Node:
    return Node("a", "127.0.0.1", "a", {"CPU": 1}, {}, port=port)


@contextlib.contextmanager
def no_more_files() -> Iterator[None]:
    """While the block runs, this process can open no file and no socket."""
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before, hard))


def test_a_port_that_does_not_open_is_the_fault_of_the_node() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        node = node_at(listener.getsockname()[1])
        assert asyncio.run(ClusterNodes().answers(node))
    assert not asyncio.run(ClusterNodes().answers(node))


def test_too_many_open_files_are_none() -> None:
    async def look(node: Node) -> bool:
        with no_more_files():
            return await ClusterNodes().answers(node)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert asyncio.run(look(node_at(listener.getsockname()[1])))
