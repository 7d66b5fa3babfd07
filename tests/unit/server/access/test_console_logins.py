"""Logins of the console: what of a request makes its cookie count, and when a login ends."""

from __future__ import annotations

import pytest

from server.access.console_logins import (
    FAILURE_SECONDS,
    IDLE_SECONDS,
    LONGEST_SECONDS,
    MAX_FAILURES,
    MAX_LOGINS,
    ConsoleLogins,
)


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def headers(login_id: str, **more: str) -> dict[bytes, bytes]:
    """What the console's page sends; `more` names are headers, with _ for -."""
    found = {b"host": b"server:8501", b"x-runstep-console": b"1"}
    found[b"cookie"] = f"theme=dark; runstep_console={login_id}".encode()
    return found | {name.replace("_", "-").encode(): v.encode() for name, v in more.items()}


def test_the_page_s_requests_have_the_credential() -> None:
    logins = ConsoleLogins(Clock())
    login_id = logins.begin("key of alice")
    assert logins.token_of(headers(login_id)) == "key of alice"
    assert "alice" not in login_id
    logins.end(headers(login_id))
    assert logins.token_of(headers(login_id)) is None


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({"origin": "http://server:8501"}, True),
        ({"origin": "https://server"}, True),  # a proxy's port
        ({"origin": "http://other:8501"}, False),
        ({"origin": "null"}, False),
        ({"origin": "ftp://server:8501"}, False),
        ({"sec_fetch_site": "same-origin"}, True),
        ({"sec_fetch_site": "none"}, True),
        ({"sec_fetch_site": "same-site"}, False),
        ({"sec_fetch_site": "cross-site"}, False),
    ],
)
def test_requests_of_other_sites_have_none(more: dict[str, str], counts: bool) -> None:
    logins = ConsoleLogins(Clock())
    login_id = logins.begin("key")
    assert (logins.token_of(headers(login_id, **more)) == "key") is counts


def test_a_cookie_without_the_header_is_nothing() -> None:
    logins = ConsoleLogins(Clock())
    found = headers(logins.begin("key"))
    del found[b"x-runstep-console"]
    assert logins.token_of(found) is None


@pytest.mark.parametrize("login_id", ["", "x" * 43, "../", "x" * 5000])
def test_unknown_ids(login_id: str) -> None:
    logins = ConsoleLogins(Clock())
    logins.begin("key")
    assert logins.token_of(headers(login_id)) is None


def test_a_login_ends_when_it_is_idle_and_after_its_longest_time() -> None:
    clock = Clock()
    logins = ConsoleLogins(clock)
    idle, used = logins.begin("idle"), logins.begin("used")
    while clock.now < 1000 + LONGEST_SECONDS - IDLE_SECONDS:
        clock.now += IDLE_SECONDS
        assert logins.token_of(headers(used)) == "used"
    clock.now += IDLE_SECONDS + 1
    assert logins.token_of(headers(used)) is None
    assert logins.token_of(headers(idle)) is None


def test_whether_a_login_stands_can_be_seen_without_using_it() -> None:
    clock = Clock()
    logins = ConsoleLogins(clock)
    sent = headers(logins.begin("key"))
    clock.now += IDLE_SECONDS
    assert logins.stands(sent)
    clock.now += 1
    assert not logins.stands(sent)
    sent = headers(logins.begin("key"))
    logins.end(sent)
    assert not logins.stands(sent)


def test_the_number_of_logins_is_limited_and_the_least_used_ends() -> None:
    logins = ConsoleLogins(Clock())
    first, second = logins.begin("first"), logins.begin("second")
    assert logins.token_of(headers(first)) == "first"
    for _ in range(MAX_LOGINS - 1):
        logins.begin("other")
    assert logins.token_of(headers(first)) == "first"
    assert logins.token_of(headers(second)) is None


def test_wrong_credentials_are_limited_in_rate() -> None:
    clock = Clock()
    logins = ConsoleLogins(clock)
    assert [logins.allows_failure() for _ in range(MAX_FAILURES + 1)] == [True] * MAX_FAILURES + [
        False
    ]
    clock.now += FAILURE_SECONDS
    assert logins.allows_failure()
