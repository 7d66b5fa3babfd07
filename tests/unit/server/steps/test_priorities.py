import pytest

from runtime.api import RunRequest
from runtime.foundation.errors import InvalidArgumentError, ResourceExhaustedError
from server.access.access_errors import DeniedError
from server.access.limits import Limits
from server.settings import Settings
from server.steps.priorities import Priorities


@pytest.fixture(scope="module")
def priorities():
    return Priorities(
        Settings(
            thread_pools=({"name": "p_fast", "num_threads": 1}, {"name": "p_slow",
                          "num_threads": 1, "low_priority": True}),
            priorities={"high": "p_fast", "low": "p_slow"},
            default_priority="low",
            load_thread_pool="p_fast",
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "pool"),
    [(None, "p_slow"), (0, "p_slow"), (1, "p_fast"), (2, "p_slow"), ("high", "p_fast")],
)
def test_names_and_numbers_stand_for_pools(priorities, asked, pool):
    assert priorities.resolve(asked).pool.name == pool
    assert priorities.resolve(asked).pool.low_priority is (pool == "p_slow")
    assert priorities.has_child(asked) is (pool == "p_slow")


@pytest.mark.parametrize("asked", ["", "p_fast", 3, -1])
def test_unknown_priorities_are_refused(priorities, asked):
    with pytest.raises(InvalidArgumentError, match=r"Unknown priority .*; known are high, low"):
        priorities.resolve(asked)
    assert not priorities.has_child(asked)


def test_a_pool_can_t_change_its_size(priorities):
    pools = ({"name": "p_fast", "num_threads": 2},)
    settings = Settings(
        thread_pools=pools, priorities={"normal": "p_fast"}, load_thread_pool="p_fast"
    )
    with pytest.raises(InvalidArgumentError, match="Pool p_fast configured previously"):
        Priorities(settings)


@pytest.mark.parametrize(
    ("limits", "default"),
    [
        (Limits(), "low"),
        (Limits(priorities=("high", "low")), "low"),
        (Limits(priorities=("high",)), "high"),
        (Limits(pools=("p_fast",)), "high"),
        (Limits(pools=("p_fast", "p_slow")), "low"),
        (Limits(priorities=("low", "high"), pools=("p_fast",)), "high"),
    ],
)
def test_an_owner_has_a_default_that_it_may_use(priorities, limits, default):
    assert priorities.default_of(limits).name == default


@pytest.mark.parametrize("pools", [(), ("p_fast",)])
def test_an_owner_without_a_pool_has_no_default(priorities, pools):
    limits = Limits(priorities=("low",), pools=pools)
    with pytest.raises(DeniedError, match="No priority has a pool that the caller may use: "):
        priorities.default_of(limits)


def limited(**limits):
    return Priorities(
        Settings(priorities={"normal": "online", "low": {"pool": "background", **limits}})
    ).resolve("low")


def test_an_entry_is_a_pool_or_a_pool_with_limits():
    low = limited(timeout_ms=50, queue_size=2)
    assert (low.pool.name, low.timeout_ms, low.queue_size) == ("background", 50, 2)
    low = limited()
    assert (low.pool.name, low.timeout_ms, low.queue_size) == ("background", 0, None)


def test_only_steps_that_have_not_begun_are_in_the_queue_of_a_priority():
    low = limited(queue_size=2)
    first, second, third = RunRequest(), RunRequest(), RunRequest()
    with low.admitted(first), low.admitted(second):
        with (
            pytest.raises(
                ResourceExhaustedError,
                match="The queue of priority low is full: 2 steps are waiting for thread pool "
                "background",
            ),
            low.admitted(third),
        ):
            pass
        first.began_at = 1.0
        with low.admitted(third), pytest.raises(ResourceExhaustedError), low.admitted(RunRequest()):
            pass
    with low.admitted(RunRequest()), low.admitted(RunRequest()):
        pass


def test_a_priority_without_a_limit_admits_all():
    low = limited()
    with low.admitted(RunRequest()), low.admitted(RunRequest()), low.admitted(RunRequest()):
        pass
