"""Messages between two processes; in these tests both ends are in one process."""

import socket
import threading

import pytest

from runtime.foundation.message_channel import MessageChannel

HEADERS = [
    {"run": 1, "step": 2**63, "arguments": [[1, [2, 3]], [7, []]]},
    {"error": [3, "what is no Unicode: \udcff", None]},
    {"seconds": 0.25, "values": ()},
]


@pytest.fixture
def ends():
    ours, theirs = map(MessageChannel, socket.socketpair())
    yield ours, theirs
    for end in (ours, theirs):
        end.close()
        end.release()


@pytest.mark.parametrize("header", HEADERS, ids=lambda header: next(iter(header)))
def test_headers_come_as_they_went(ends, header):
    ours, theirs = ends
    ours.send(header)
    assert theirs.receive() == {
        k: list(v) if isinstance(v, tuple) else v for k, v in header.items()
    }


def test_buffers_of_all_sizes_come_in_their_order(ends):
    ours, theirs = ends
    buffers = [bytes([n % 251]) * n for n in (0, 1, 1 << 14, (1 << 14) + 1, 1 << 20)]
    sender = threading.Thread(target=ours.send, args=({"n": 5}, buffers))
    sender.start()
    assert theirs.receive() == {"n": 5}
    assert [theirs.receive_buffer() for _ in buffers[:-1]] == buffers[:-1]
    last = bytearray(1 << 20)
    theirs.receive_into(memoryview(last))
    sender.join(30)
    assert last == buffers[-1]


def test_a_peer_that_is_gone_is_a_connection_error(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(ConnectionError, match="The other process has gone"):
        ours.receive()
