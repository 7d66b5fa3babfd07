import asyncio
import json
import re

import pytest

from runtime.foundation.errors import NotFoundError, UnavailableError
from server.access.access import Access
from server.connections.plain_requests import LATE_CONTENT, LateContent
from server.lifecycle import Lifecycle, Phase
from server.metrics import Metrics
from server.middleware import RequestMiddleware
from server.settings import Settings

LIMIT = 10


class App:
    """Reads the body and answers with what the middleware prepared."""

    def __init__(self, error=None):
        self.error = error
        self.seen = None

    async def __call__(self, scope, receive, send):
        self.seen = scope
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        if self.error is not None:
            raise self.error
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})


def call(
    app, *chunks, headers=(), method="POST", path="/v1/x", lifecycle=None, access=None, **more
):
    """(status, headers, body) of one request, and the metrics."""
    metrics = Metrics()
    middleware = RequestMiddleware(
        app,
        access=access or Access(Settings(), {}.get),
        lifecycle=lifecycle or Lifecycle(),
        metrics=metrics,
        max_body_bytes=LIMIT,
        access_log=more.get("access_log", False),
    )
    incoming = [
        {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
        for index, chunk in enumerate(chunks or (b"",))
    ]
    sent = []

    async def receive():
        return incoming.pop(0)

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    asyncio.run(middleware(scope, receive, send))
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"], metrics


def test_requests_get_an_id_and_the_time_of_their_receipt():
    app = App()
    status, headers, body, _ = call(app, b"hello")
    assert (status, body) == (200, b"hello")
    assert headers[b"x-request-id"].decode() == app.seen["request_id"] != ""
    assert app.seen["received_at"] > 0


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [(b"mine-1", True), (b"", False), (b"a b", False), (b"\n", False), (b"x" * 129, False)],
)
def test_a_client_s_id_is_kept_when_it_may_be_logged(given, is_kept):
    _, headers, _, _ = call(App(), headers=[(b"x-request-id", given)])
    assert (headers[b"x-request-id"] == given) is is_kept


@pytest.mark.parametrize(
    ("headers", "chunks"),
    [
        ([(b"content-length", b"11")], (b"",)),
        ([(b"transfer-encoding", b"chunked")], (b"123456", b"789012")),
    ],
)
def test_bodies_are_limited(headers, chunks):
    status, _, body, _ = call(App(), *chunks, headers=headers)
    assert status == 413
    assert "rest.max_body_bytes is 10" in json.loads(body)["error"]


def test_bodies_at_the_limit_pass():
    assert call(App(), b"1234567890", headers=[(b"content-length", b"10")])[0] == 200
    chunked = [(b"transfer-encoding", b"chunked")]
    assert call(App(), b"12345", b"67890", headers=chunked)[0] == 200


def test_a_length_that_is_no_number_is_refused():
    status, _, body, _ = call(App(), headers=[(b"content-length", b"ten")])
    assert status == 400 and "Content-Length is not a number" in json.loads(body)["error"]


def test_errors_of_the_application_are_answered():
    status, headers, body, metrics = call(App(NotFoundError("nothing here")))
    assert status == 404
    assert json.loads(body)["request_id"] == headers[b"x-request-id"].decode()
    assert b'runstep_requests_total{api="none",status="404"} 1.0' in metrics.exposition()


def test_unexpected_errors_are_500_and_logged(caplog):
    status, _, body, _ = call(App(ZeroDivisionError("oops")))
    assert status == 500 and b"oops" not in body
    assert "oops" in caplog.text and "POST /v1/x" in caplog.text


def test_what_the_framework_raises_after_its_answer_is_not_answered_again():
    class AnswersAndRaises(App):
        async def __call__(self, scope, receive, send):
            await super().__call__(scope, receive, send)
            raise ZeroDivisionError

    assert call(AnswersAndRaises(), b"hello")[2] == b"hello"


def test_half_an_answer_breaks_the_connection():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(app)


def test_unavailability_is_no_news_for_the_log(caplog):
    assert call(App(UnavailableError("loading")))[0] == 503
    assert caplog.records == []


def test_while_draining_work_is_refused_but_may_be_ended():
    lifecycle = Lifecycle()
    lifecycle.phase = Phase.DRAINING
    assert call(App(), lifecycle=lifecycle)[0] == 503
    assert call(App(), lifecycle=lifecycle, method="GET")[0] == 200
    assert call(App(), lifecycle=lifecycle, path="/v1/sessions/a:close")[0] == 200
    assert lifecycle.in_flight == 0


def test_the_access_log_is_for_those_who_want_it(caplog):
    caplog.set_level("INFO")
    call(App())
    assert caplog.records == []
    call(App(), access_log=True)
    (record,) = caplog.records
    assert record.getMessage() == "POST /v1/x" and record.status == 200 and record.request_id


def test_the_shortcut_answers_its_paths_in_place_of_the_application():
    app, shortcut = App(), App()
    middleware = RequestMiddleware(
        app,
        shortcuts=((re.compile("/v1/short"), shortcut),),
        access=Access(Settings(), {}.get),
        lifecycle=Lifecycle(),
        metrics=Metrics(),
        max_body_bytes=LIMIT,
        access_log=False,
    )

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        pass

    for path in ("/v1/short", "/v1/other"):
        scope = {"type": "http", "method": "GET", "path": path, "headers": []}
        asyncio.run(middleware(scope, receive, send))
    assert (shortcut.seen["path"], app.seen["path"]) == ("/v1/short", "/v1/other")


class Now:
    """A middleware that answers `:predict` at once with `content`, or raises it."""

    def __init__(self, content, *, access_log=False, **settings):
        self.content = content
        self.lifecycle = Lifecycle()
        self.metrics = Metrics()
        self.middleware = RequestMiddleware(
            App(),
            answers_now={"predict": ("predict", self._answer)},
            access=Access(Settings(**settings), {}.get),
            lifecycle=self.lifecycle,
            metrics=self.metrics,
            max_body_bytes=LIMIT,
            access_log=access_log,
        )

    def _answer(self, path, headers, body):
        if isinstance(self.content, Exception):
            raise self.content
        return self.content

    def __call__(self, path="/v1/models/m:predict", body=b"{}", request_id=b"r", **headers):
        given = {name.encode(): value for name, value in headers.items()}
        return self.middleware.answer_now(path, {b"x-request-id": request_id, **given}, body)

    async def application(self, **headers):
        """Answer a request in the usual way."""

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            assert message.get("status", 200) == 200

        given = [(name.encode(), value) for name, value in headers.items()]
        scope = {"type": "http", "method": "GET", "path": "/", "headers": given}
        await self.middleware(scope, receive, send)

    def tallies(self):
        lines = self.metrics.exposition().decode().splitlines()
        return [line for line in lines if line.startswith("runstep_requests_total{")]


def headers_of(response):
    head = response.text.partition(b"\r\n\r\n")[0]
    return dict(line.split(b": ") for line in head.split(b"\r\n"))


def test_a_response_at_once_has_the_headers_of_any_and_is_counted(caplog):
    caplog.set_level("INFO")
    now = Now(b"{}")
    assert now() == (
        200,
        b"content-type: application/json\r\ncontent-length: 2\r\nx-request-id: r\r\n\r\n{}",
    )
    assert now.tallies() == ['runstep_requests_total{api="predict",status="200"} 1.0']
    assert now.lifecycle.ended == 1
    assert caplog.records == []


def test_ids_given_to_responses_at_once_differ():
    now = Now(b"{}")
    ids = [headers_of(now(request_id=b"a b"))[b"x-request-id"] for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert all(re.fullmatch(rb"[0-9a-f]{16}", each) for each in ids)


@pytest.mark.parametrize("path", ["/v1/models/m:classify", "/v1/models/m", "/"])
def test_other_paths_are_not_answered_at_once(path):
    assert Now(b"{}")(path) is None


def test_nothing_is_answered_at_once_while_draining_or_over_the_limit():
    now = Now(b"{}")
    assert now(body=b" " * (LIMIT + 1)) is None
    now.lifecycle.phase = Phase.DRAINING
    assert now() is None
    assert now.tallies() == []


def test_requests_whose_caller_must_be_looked_at_are_not_answered_at_once(tmp_path):
    keys = tmp_path / "keys.yaml"
    keys.write_text("owners: {}")
    for settings in (
        {"access": {"keys_file": str(keys)}},
        {"access": {"keys_file": str(keys), "anonymous_roles": ["predict"]}},
    ):
        now = Now(b"{}", **settings)
        assert now(authorization=b"Bearer k") is None
        assert now() is None
        assert now.tallies() == []


def test_a_host_is_answered_at_once_only_after_it_was_found_right():
    now = Now(b"{}", rest={"host": "127.0.0.1"})
    assert now() is None
    assert now(host=b"evil.com:8501") is None
    assert now(host=b"localhost:8501") is None
    asyncio.run(now.application(host=b"localhost:8501"))
    assert now(host=b"localhost:8501").status == 200
    assert now(host=b"evil.com:8501") is None


def test_what_is_declined_is_not_counted():
    now = Now(None)
    assert now() is None
    assert now.tallies() == []
    assert now.lifecycle.ended == 0


def test_an_error_at_once_is_answered_as_any(caplog):
    now = Now(NotFoundError("no"))
    response = now()
    headers, body = headers_of(response), response.text.partition(b"\r\n\r\n")[2]
    assert (response.status, headers[b"x-request-id"]) == (404, b"r")
    assert headers[b"content-length"] == b"%d" % len(body)
    assert json.loads(body) == {"error": "no", "code": "NOT_FOUND", "request_id": "r"}
    assert now.tallies() == ['runstep_requests_total{api="predict",status="404"} 1.0']
    assert caplog.records == []


@pytest.mark.parametrize("error", [NotFoundError("no"), UnavailableError("later")])
def test_an_error_at_once_has_the_headers_of_any_in_their_order(error):
    path = "/v1/models/m:predict"
    _, headers, _, _ = call(App(error), path=path, headers=[(b"x-request-id", b"r")])
    assert list(headers_of(Now(error)(path)).items()) == list(headers.items())
    assert next(iter(headers.items())) == (b"content-type", b"application/json")


def test_an_unexpected_error_at_once_is_500_and_logged(caplog):
    response = Now(ZeroDivisionError())()
    body = response.text.partition(b"\r\n\r\n")[2]
    assert response.status == 500 and json.loads(body)["code"] == "INTERNAL"
    assert [record.name for record in caplog.records] == ["server.errors", "server.access"]


def test_the_access_log_has_requests_answered_at_once(caplog):
    caplog.set_level("INFO")
    Now(b"{}", access_log=True)()
    (record,) = caplog.records
    assert record.getMessage() == "POST /v1/models/m:predict"
    assert (record.status, record.request_id) == (200, "r")


def test_late_content_is_sent_by_the_application():
    async def content():
        return b"late"

    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        raise AssertionError("the body has been read")

    now = Now(content())
    late = now()
    assert isinstance(late, LateContent) and now.tallies() == []
    scope = {"type": "http", "method": "POST", "path": "/v1/models/m:predict", "headers": []}
    asyncio.run(now.middleware(scope | {LATE_CONTENT: late}, receive, send))
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"late")
    assert (b"content-length", b"4") in sent[0]["headers"]
    assert now.tallies() == ['runstep_requests_total{api="predict",status="200"} 1.0']


def test_a_logged_path_cannot_add_keys(caplog):
    caplog.set_level("INFO")
    call(App(), path="/v1/x status=200 owner=root", access_log=True)
    (record,) = caplog.records
    assert record.getMessage() == "POST /v1/x%20status=200%20owner=root"


def test_who_is_not_admitted_does_not_reach_the_application(tmp_path):
    keys = tmp_path / "keys.yaml"
    keys.write_text("owners: {}")
    access = Access(Settings(access={"keys_file": str(keys)}), {}.get)
    app = App()
    status, headers, body, _ = call(app, b"x" * 100, access=access)
    assert (status, app.seen) == (401, None)
    assert headers[b"www-authenticate"] == b"Bearer"
    assert json.loads(body)["code"] == "UNAUTHENTICATED"
