"""The console over HTTP: its files, logins, other sites, live figures, labels, drain, switch."""

from __future__ import annotations

import contextlib
import itertools
import json
import pathlib
from collections.abc import Iterator

import httpx
import pytest
import yaml

from server.console.page_files import FOLDER
from tests.integration.access import bearer, key_of, write_keys
from tests.integration.server_process import ROOT, SECONDS, ServerProcess

PAGE = {"X-Runstep-Console": "1"}
EXAMPLES = ROOT / "examples" / "models"


def start(folder: pathlib.Path, **settings: object) -> ServerProcess:
    file = folder / "server.yaml"
    model = {"name": "half_plus_two", "base_path": str(EXAMPLES / "half_plus_two")}
    file.write_text(yaml.safe_dump({"models": [model], **settings}))
    process = ServerProcess(f"--config={file}")
    process.wait_for("Loaded version 1 of model half_plus_two ")
    return process


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("guarded")
    keys = write_keys(folder / "keys.yaml")
    process = start(folder, admin={"enabled": True}, access={"keys_file": keys})
    yield process
    process.end()


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    process = start(tmp_path_factory.mktemp("open"), admin={"enabled": True})
    yield process
    process.end()


@contextlib.contextmanager
def logged_in(server: ServerProcess, owner: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.http_address, headers=PAGE, timeout=SECONDS) as client:
        client.post("/console/api/login", json={"credential": key_of(owner)}).raise_for_status()
        yield client


def test_every_file_of_the_page_is_served_and_kept_to_itself(guarded: ServerProcess) -> None:
    for path in FOLDER.rglob("*"):
        if not path.is_file():
            continue
        name = path.relative_to(FOLDER).as_posix()
        answer = guarded.client.get(f"/console/{name}")
        assert (answer.status_code, answer.content) == (200, path.read_bytes())
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        again = guarded.client.get(
            f"/console/{name}", headers={"If-None-Match": answer.headers["etag"]}
        )
        assert (again.status_code, again.content) == (304, b"")
    assert guarded.client.get("/console/").text == (FOLDER / "index.html").read_text()


@pytest.mark.parametrize(
    "path",
    ["%2e%2e%2fpage_files.py", "..%2f..%2fapp.py", "/etc/passwd", "nothing"],
)
def test_no_other_file_is_served(guarded: ServerProcess, path: str) -> None:
    answer = guarded.client.get(f"/console/{path}")
    assert answer.status_code == 404
    assert answer.json()["code"] == "NOT_FOUND"


def test_the_address_without_a_slash_leads_there_below_any_path(guarded: ServerProcess) -> None:
    answer = guarded.client.get("/console", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "console/")


def test_a_login_is_a_cookie_that_is_no_key(guarded: ServerProcess) -> None:
    with logged_in(guarded, "alice") as client:
        (cookie,) = client.cookies.jar
        assert (cookie.name, cookie.path) == ("runstep_console", "/")
        assert cookie.value is not None and key_of("alice") not in cookie.value
        me = client.get("/console/api/me").json()
        assert (me["authentication"], me["name"], me["admin_enabled"]) == (True, "alice", True)
        assert client.get("/v1/sessions").status_code == 200
        client.post("/console/api/logout", json={}).raise_for_status()
        client.cookies.set("runstep_console", cookie.value)
        assert client.get("/console/api/me").status_code == 401
    log = "".join(guarded.log)
    assert key_of("alice") not in log and cookie.value not in log


def test_a_stream_ends_with_its_login(guarded: ServerProcess) -> None:
    with (
        logged_in(guarded, "alice") as client,
        client.stream("GET", "/console/api/events") as stream,
        guarded.client.stream("GET", "/console/api/events", headers=bearer("alice")) as other,
    ):
        lines = stream.iter_lines()
        assert next(lines).startswith("data: ")
        client.post("/console/api/logout", json={}).raise_for_status()
        rest = list(itertools.islice(filter(None, lines), 4))
        assert len(rest) <= 1  # one that was on its way; then the end
        others = filter(None, other.iter_lines())
        assert all(next(others).startswith("data: ") for _ in range(4))  # its key is known still


def test_the_cookie_s_attributes(guarded: ServerProcess) -> None:
    body = {"credential": key_of("alice")}
    answer = guarded.client.post("/console/api/login", json=body, headers=PAGE)
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(
        answer.headers["set-cookie"].split("; ")
    )
    assert "Secure" not in answer.headers["set-cookie"]
    address = guarded.http_address.removeprefix("http://")
    over_tls = PAGE | {"Origin": f"https://{address}"}
    answer = guarded.client.post("/console/api/login", json=body, headers=over_tls)
    assert "Secure" in answer.headers["set-cookie"].split("; ")
    guarded.client.cookies.clear()


def test_other_sites_cannot_use_a_login(guarded: ServerProcess) -> None:
    with logged_in(guarded, "alice") as client:
        for headers in (
            {"X-Runstep-Console": ""},  # replaced below: no header at all
            PAGE | {"Origin": "https://elsewhere.example"},
            PAGE | {"Sec-Fetch-Site": "cross-site"},
        ):
            request = client.build_request("POST", "/v1/sessions", json={}, headers=headers)
            if not headers["X-Runstep-Console"]:
                del request.headers["X-Runstep-Console"]
            assert client.send(request).status_code in (401, 403)
        assert client.post("/v1/sessions", json={}).status_code == 201


@pytest.mark.parametrize("headers", [{}, PAGE | {"Origin": "https://elsewhere.example"}])
def test_other_sites_cannot_log_in(guarded: ServerProcess, headers: dict[str, str]) -> None:
    body = {"credential": key_of("alice")}
    answer = guarded.client.post("/console/api/login", json=body, headers=headers)
    assert answer.status_code == 400
    assert "set-cookie" not in answer.headers


def test_wrong_credentials_are_refused_and_limited(tmp_path: pathlib.Path) -> None:
    server = start(tmp_path, access={"keys_file": write_keys(tmp_path / "keys.yaml")})
    try:
        codes = [
            server.client.post(
                "/console/api/login", json={"credential": "wrong"}, headers=PAGE
            ).status_code
            for _ in range(25)
        ]
        assert codes == [401] * 20 + [429] * 5
        with logged_in(server, "alice") as client:  # the right one still works
            assert client.get("/console/api/me").status_code == 200
    finally:
        server.end()


def test_a_role_that_lacks_is_refused(guarded: ServerProcess) -> None:
    with logged_in(guarded, "alice") as client:
        for path in ("/console/api/drain", "/console/api/models/half_plus_two:label"):
            answer = client.post(path, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")
    answer = guarded.client.get("/console/api/events")
    assert answer.status_code == 401


def test_live_figures(open_server: ServerProcess) -> None:
    client = open_server.client
    with client.stream("GET", "/console/api/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in stream.iter_lines() if line)
        before = read_event(next(lines))
        for _ in range(5):
            path = f"{open_server.http_address}/v1/models/half_plus_two:predict"
            httpx.post(path, json={"instances": [1.0]}).raise_for_status()
        events = [before, read_event(next(lines)), read_event(next(lines))]
    row = next(each for each in events[-1]["requests"]["front"] if each["name"] == "REST")
    assert row["total"] >= 5
    assert (
        sum(
            each["per_second"]
            for event in events[1:]
            for each in event["requests"]["model"]
            if each["name"] == "half_plus_two"
        )
        > 3
    )
    assert events[-1]["models"][0]["versions"][0]["state"] == "AVAILABLE"
    assert {"online", "background"} <= {pool["name"] for pool in events[-1]["pools"]}
    assert events[-1]["process"]["resident_bytes"] > 1e7


def read_event(line: str) -> dict[str, list[dict[str, object]]]:  # type: ignore[type-arg]
    assert line.startswith("data: ")
    found: dict[str, list[dict[str, object]]] = json.loads(line.removeprefix("data: "))
    return found


def test_a_label_is_moved_and_removed(open_server: ServerProcess) -> None:
    client, path = open_server.client, "/console/api/models/half_plus_two:label"
    client.post(path, json={"label": "stable", "version": 1}).raise_for_status()
    predict = "/v1/models/half_plus_two/labels/stable:predict"
    assert client.post(predict, json={"instances": [1.0]}).json() == {"predictions": [2.5]}
    answer = client.post(path, json={"label": "stable", "version": 7})
    assert answer.status_code == 404
    assert answer.json()["error"] == "Version 7 of model half_plus_two does not serve; 1 does"
    assert client.post(predict, json={"instances": [1.0]}).status_code == 200
    client.post(path, json={"label": "stable", "version": None}).raise_for_status()
    assert client.post(predict, json={"instances": [1.0]}).status_code == 400
    for body in ({"label": "a b"}, {"label": "a", "version": "1"}, {"version": 1}, {"x": 1}):
        assert client.post(path, json=body).status_code == 400


def test_without_keys_there_is_no_login(open_server: ServerProcess) -> None:
    answer = open_server.client.post("/console/api/login", json={"credential": "k"}, headers=PAGE)
    assert answer.status_code == 400
    assert "there is no login" in answer.json()["error"]
    assert open_server.client.get("/console/api/me").json()["authentication"] is False


def test_drain_ends_the_server_as_a_signal_does(tmp_path: pathlib.Path) -> None:
    server = start(tmp_path, admin={"enabled": True})
    try:
        with server.client.stream("GET", "/console/api/events") as stream:
            lines = (line for line in stream.iter_lines() if line)
            assert read_event(next(lines))
            address = f"{server.http_address}/console/api/drain"
            httpx.post(address, json={}).raise_for_status()
            for line in lines:  # the stream ends by itself
                assert line.startswith("data: ")
        assert server.process.wait(SECONDS) == 0
    finally:
        server.end()


def test_the_console_can_be_switched_off(tmp_path: pathlib.Path) -> None:
    server = start(tmp_path, console={"enabled": False})
    try:
        session = server.client.post("/v1/sessions", json={}).json()["session"]
        one = f"/console/api/sessions/{session}"
        reads = ("me", "events", "sessions", "models/half_plus_two")
        for path in ("/console", "/console/", *(f"/console/api/{each}" for each in reads), one):
            assert server.client.get(path).status_code == 404, path
        for path in ("/console/api/models/half_plus_two/trace", f"{one}/trace"):
            assert server.client.post(path, json={"instances": [1.0]}).status_code == 404, path
    finally:
        server.end()


def test_administration_is_off_by_default(tmp_path: pathlib.Path) -> None:
    server = start(tmp_path)
    try:
        answer = server.client.post("/console/api/drain", json={})
        assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")
        assert "admin.enabled is false" in answer.json()["error"]
    finally:
        server.end()


def test_owners_with_a_key_need_no_login(guarded: ServerProcess) -> None:
    answer = guarded.client.get("/console/api/me", headers=bearer("alice"))
    assert answer.json()["name"] == "alice"
