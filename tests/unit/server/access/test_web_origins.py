import pytest

from runtime.errors import PermissionDeniedError
from server.access.web_origins import WebOrigins, host_of
from server.settings_sections.ports import is_loopback


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "::1", "[::1]"]
)
def test_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "", "::", "10.0.0.1", "localhost.evil.com", "127.0.0.1.evil.com", "x"]
)
def test_not_loopback(host):
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("netloc", "host"),
    [("a:1", "a"), ("A", "a"), ("[::1]:80", "::1"), ("[::1]", "::1"), ("", ""), (":1", "")],
)
def test_host_of(netloc, host):
    assert host_of(netloc) == host


@pytest.mark.parametrize("host", [b"localhost:8501", b"127.0.0.1", b"[::1]:1", b"my.host:1"])
def test_a_local_server_has_loopback_names_and_configured_ones(host):
    origins = WebOrigins("127.0.0.1", ["My.Host"])
    assert host not in origins.known_hosts
    origins.check_host(host)
    assert host in origins.known_hosts


@pytest.mark.parametrize("host", [b"evil.com", b"evil.com:8501", b"127.0.0.1.evil.com", b"", None])
def test_a_name_that_only_resolves_to_loopback_is_refused(host):
    origins = WebOrigins("localhost", [])
    with pytest.raises(PermissionDeniedError, match=r"bound to loopback.*access\.hosts"):
        origins.check_host(host)
    assert host not in origins.known_hosts


def test_a_server_for_others_has_any_name():
    WebOrigins("0.0.0.0", []).check_host(b"anything")


def test_what_is_remembered_is_bounded():
    origins = WebOrigins("127.0.0.1", [])
    for port in range(1000):
        origins.check_host(b"localhost:%d" % port)
    assert len(origins.known_hosts) == 64


OWN = b"server:8501"


@pytest.mark.parametrize(
    ("bound", "origin", "host"),
    [
        ("0.0.0.0", b"http://server:8501", OWN),
        ("0.0.0.0", b"https://Server", OWN),
        ("0.0.0.0", b"http://192.168.1.5:8501", b"192.168.1.5:8501"),
        ("0.0.0.0", b"http://[2001:db8::1]:8501", b"[2001:db8::1]:8501"),
        ("0.0.0.0", b"http://localhost:8501", b"localhost:8501"),
        ("here.example", b"http://here.example", b"here.example"),
        ("0.0.0.0", b"https://page.example", OWN),  # configured
        ("127.0.0.1", b"http://localhost:3000", b"127.0.0.1:8501"),
    ],
)
def test_pages_of_the_server_s_own_hosts_may_change_something(bound, origin, host):
    WebOrigins(bound, ["page.example"], "server").check_origin("POST", origin, host)


@pytest.mark.parametrize(
    ("bound", "origin", "host"),
    [
        ("0.0.0.0", b"http://evil.com", OWN),
        ("0.0.0.0", b"null", OWN),
        ("0.0.0.0", b"", OWN),
        ("0.0.0.0", b"http://", b""),
        ("0.0.0.0", b"http://localhost", OWN),
        ("0.0.0.0", b"file://server", OWN),
        ("0.0.0.0", b"http://server.evil.com", OWN),
        ("127.0.0.1", b"http://evil.com", b"localhost:8501"),
        ("0.0.0.0", b"http://evil.com", None),
        ("0.0.0.0", b"http://evil.com:8501", b"evil.com:8501"),  # DNS rebinding
    ],
)
def test_pages_of_other_hosts_may_not(bound, origin, host):
    origins = WebOrigins(bound, [], "server")
    with pytest.raises(PermissionDeniedError, match="A web page of "):
        origins.check_origin("POST", origin, host)
    with pytest.raises(PermissionDeniedError):
        origins.check_origin("DELETE", origin, host)
    origins.check_origin("GET", origin, host)  # which the browser does not let the page read


def test_a_page_that_browsers_give_credentials_has_the_host_of_the_request():
    origins = WebOrigins("0.0.0.0", [], "server")
    origins.check_origin("POST", b"https://proxy.example", b"proxy.example", has_credentials=True)
    with pytest.raises(PermissionDeniedError):
        origins.check_origin("POST", b"https://evil.com", b"proxy.example", has_credentials=True)
