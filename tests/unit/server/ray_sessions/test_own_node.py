"""A front end knows that the Ray node that it belongs to has ended."""

from __future__ import annotations

import errno
import logging
import socket

import pytest

from runtime.sessions.ray_cluster.node_watch import says_closed
from server.ray_sessions.own_node import OwnNode


def test_a_node_that_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        node = OwnNode(f"{host}:{port}", says_closed)
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


def test_a_fault_of_this_process_is_none_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    error = OSError(errno.EMFILE, "Too many open files")

    def fail(*_: object) -> socket.socket:
        raise error

    node = OwnNode("127.0.0.1:1", says_closed)
    monkeypatch.setattr(socket, "create_connection", fail)
    assert node.fault() == ""
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    fault = node.fault()
    assert "does not answer: [Errno" in fault
    error = OSError(errno.EMFILE, "Too many open files")
    assert node.fault() == fault  # nothing new is known
