import socket
import threading

import pytest

from server.commands.load.http_connection import HttpConnection
from server.commands.load.target import CallFailed

REQUEST = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


@pytest.fixture
def serve():
    """Serve each of the given lists of answers on a connection of its own; None closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads = []

    def work(connections):
        for answers in connections:
            connection, _ = listener.accept()
            with connection:
                for answer in answers:
                    if not connection.recv(1 << 16):
                        break
                    for part in answer:
                        connection.sendall(part)

    def start(*connections, timeout=30):
        threads.append(threading.Thread(target=work, args=(connections,), daemon=True))
        threads[-1].start()
        return HttpConnection("127.0.0.1", listener.getsockname()[1], None, timeout)

    yield start
    listener.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


WHOLE = [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"]
PARTS = [
    b"HTTP/1.1 404 Not",
    b" Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
    b"c\r\n0\r\n\r\n",
]


def test_answers_on_one_connection(serve):
    connection = serve([WHOLE, PARTS, WHOLE])
    assert connection.request(REQUEST) == (200, b"ok")
    assert connection.request(REQUEST) == (404, b"abc")
    assert connection.request(REQUEST) == (200, b"ok")
    connection.close()


def test_a_connection_that_was_closed_meanwhile_is_opened_again(serve):
    closing = [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1"]
    connection = serve([WHOLE], [closing], [WHOLE])
    assert [connection.request(REQUEST).body for _ in range(3)] == [b"ok", b"1", b"ok"]
    connection.close()


def test_an_answer_that_breaks_off_is_a_failure(serve):
    connection = serve([[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok"]])
    with pytest.raises(CallFailed) as caught:
        connection.request(REQUEST)
    assert caught.value.code == "UNAVAILABLE" and caught.value.lost
    assert "the server has closed the connection" in caught.value.message


def test_no_answer_in_time(serve):
    connection = serve([[]], timeout=0.01)
    waiting = socket.create_server(("127.0.0.1", 0))  # accepts in its backlog, and never answers
    silent = HttpConnection("127.0.0.1", waiting.getsockname()[1], None, 0.01)
    with pytest.raises(CallFailed, match=r"no answer within 0\.01 s") as caught:
        silent.request(REQUEST)
    assert caught.value.code == "DEADLINE_EXCEEDED" and caught.value.lost
    waiting.close()
    with pytest.raises(CallFailed):
        connection.request(REQUEST)


def test_what_is_not_http(serve):
    connection = serve([[b"SSH-2.0-nothing\r\n"]])
    with pytest.raises(CallFailed, match="does not answer in HTTP") as caught:
        connection.request(REQUEST)
    assert caught.value.code == "INTERNAL"


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(CallFailed, match=f"127.0.0.1:{port}: Connection refused") as caught:
        HttpConnection("127.0.0.1", port, None, 1).request(REQUEST)
    assert caught.value.lost
