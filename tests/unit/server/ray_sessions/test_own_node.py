"""A front end knows that the Ray node that it belongs to has ended."""

from __future__ import annotations

import logging
import socket

import pytest

from server.ray_sessions.own_node import OwnNode


def test_a_node_that_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        node = OwnNode(f"{host}:{port}")
        assert [node.fault(), node.fault()] == ["", ""]
        assert not caplog.messages
    faults = [node.fault() for _ in range(3)]
    start = f"sessions on Ray: the Ray node 127.0.0.1:{port} that this server belongs to does not"
    assert all(fault.startswith(f"{start} answer: ") for fault in faults)
    assert len(caplog.messages) == 1  # not at every look
    assert caplog.messages[0].startswith(start)
    with socket.create_server((host, port)):
        assert node.fault() == ""
    assert caplog.messages[1:] == [f"The Ray node 127.0.0.1:{port} answers again"]
