import math
import re

import pytest

from runtime.foundation.errors import InvalidArgumentError
from server.sessions.lease import Clock, Lease, check_lease_seconds, rfc3339


def test_a_lease_runs_out_after_its_idle_time():
    lease = Lease(10, now=100)
    assert not lease.has_expired(109.9) and lease.has_expired(110)
    lease.renew(105)
    assert lease.expires_at(106) == 115
    lease.renew(106, seconds=2)
    assert lease.has_expired(108)


def test_a_lease_that_is_held_does_not_run_out():
    lease = Lease(10, now=0)
    lease.hold()
    lease.hold()
    assert not lease.has_expired(1000) and lease.expires_at(1000) == 1010
    lease.release(1000)
    assert not lease.has_expired(2000)
    lease.release(2000)
    assert not lease.has_expired(2009) and lease.has_expired(2010)


def test_wall_time_of_an_instant_is_rfc3339_in_utc():
    clock = Clock(monotonic=lambda: 50.0, wall=lambda: 1_700_000_000.0)
    assert rfc3339(clock.wall_at(60.5)) == "2023-11-14T22:13:30.500Z"


@pytest.mark.parametrize("seconds", [0.001, 1, 3600])
def test_a_lease_may_be_as_long_as_the_settings_say(seconds):
    assert check_lease_seconds(seconds, 3600) == seconds


@pytest.mark.parametrize("seconds", [0, -1, 3600.5, math.inf, math.nan])
def test_other_leases_are_refused(seconds):
    message = f"lease_seconds must be more than 0 and at most 3600, got {seconds:g}"
    with pytest.raises(InvalidArgumentError, match=re.escape(message)):
        check_lease_seconds(seconds, 3600)


@pytest.mark.parametrize("seconds", [True, "1", None])
def test_a_lease_is_a_number(seconds):
    with pytest.raises(InvalidArgumentError, match="lease_seconds must be a number, got"):
        check_lease_seconds(seconds, 3600)
