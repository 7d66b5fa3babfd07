import math

import pytest

from runtime.errors import PermissionDeniedError
from server.access.access_errors import LimitExceededError
from server.access.limits import Limits, TokenBucket, Usage


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def usage(clock=None, **limits):
    return Usage("alice", Limits(**limits), clock or Clock())


def test_a_bucket_grants_a_second_s_worth_at_once_and_then_its_rate():
    bucket = TokenBucket(2, now=0)
    granted = 0
    for tenth in range(31):
        while not bucket.seconds_to_wait(tenth / 10):
            bucket.take(1)
            granted += 1
    assert granted == 2 + 2 * 3


def test_requests_above_the_rate_are_refused_with_the_time_to_wait():
    clock = Clock()
    one = usage(clock, requests_per_second=2)
    one.begin_request()
    one.begin_request()
    text = "^alice exceeds its limit: requests_per_second is 2$"
    with pytest.raises(LimitExceededError, match=text) as error:
        one.begin_request()
    assert error.value.retry_after_seconds == pytest.approx(0.5)
    clock.now += 0.5
    one.begin_request()


def test_a_rate_below_one_request_per_second_admits_one():
    clock = Clock()
    one = usage(clock, requests_per_second=0.1)
    one.begin_request()
    with pytest.raises(LimitExceededError) as error:
        one.begin_request()
    assert error.value.retry_after_seconds == pytest.approx(10)


def test_a_body_larger_than_a_second_s_worth_is_paid_for_afterwards():
    clock = Clock()
    one = usage(clock, bytes_per_second=1000)
    one.begin_request()
    one.add_bytes(5000)
    with pytest.raises(LimitExceededError, match="bytes_per_second is 1000") as error:
        one.begin_request()
    assert error.value.retry_after_seconds == pytest.approx(4.001)
    clock.now += 4.01
    one.begin_request()


def test_a_refused_request_takes_nothing():
    clock = Clock()
    one = usage(clock, requests_per_second=1, bytes_per_second=10)
    one.add_bytes(20)
    for _ in range(5):
        with pytest.raises(LimitExceededError, match="bytes_per_second"):
            one.begin_request()
    clock.now += 1.2
    one.begin_request()


def test_running_steps_are_limited():
    one = usage(concurrent_steps=2)
    one.begin_step()
    one.begin_step()
    with pytest.raises(LimitExceededError, match=r"concurrent_steps is 2$"):
        one.begin_step()
    one.end_step()
    one.begin_step()


def test_sessions_are_limited():
    one = usage(sessions=1)
    one.check_sessions(5)
    one.note_sessions(1)
    with pytest.raises(LimitExceededError, match=r"sessions is 1$") as error:
        one.check_sessions(5)
    assert error.value.retry_after_seconds == 5
    with pytest.raises(LimitExceededError) as error:
        one.check_sessions(math.inf)
    assert math.isfinite(error.value.retry_after_seconds)


def test_priorities_are_limited():
    one = usage(priorities=("low",))
    one.check_priority("low")
    text = "^alice may not use priority 'normal'; it may use low$"
    with pytest.raises(PermissionDeniedError, match=text):
        one.check_priority("normal")
    usage().check_priority("normal")


def test_new_limits_keep_what_runs():
    one = usage()
    one.begin_step()
    one.set_limits(Limits(concurrent_steps=1))
    with pytest.raises(LimitExceededError):
        one.begin_step()
    one.end_step()
    one.begin_step()


def test_a_short_step_may_run_where_a_step_would_be_admitted_to_the_default_pool():
    one = usage(concurrent_steps=1)
    assert one.allows_short_step
    one.begin_step()
    assert not one.allows_short_step
    assert not usage(priorities=("low",)).allows_short_step
    assert not usage(pools=()).allows_short_step
    assert usage(requests_per_second=1).allows_short_step
