import pytest
from google.protobuf import json_format

import protos as pb
from runtime.foundation.errors import InvalidArgumentError
from runtime.foundation.global_thread_pools import global_thread_pools, schedulable_cores
from server.sessions.session_config import runs_in_caller, session_config
from server.settings import SessionSettings, ThreadPoolSettings

POOLS = (
    ThreadPoolSettings(name="config_a", num_threads=0),
    ThreadPoolSettings(name="config_b", num_threads=1),
)


@pytest.fixture(autouse=True, scope="module")
def global_pools():
    for pool in POOLS:
        global_thread_pools.get_or_create(pool.name, pool.num_threads)


def check(config, **settings):
    asked = json_format.ParseDict(config, pb.ConfigProto())
    return session_config(asked, SessionSettings(**settings), POOLS)


def listed(config):
    return [(pool.global_name, pool.num_threads) for pool in config.session_inter_op_thread_pool]


def test_without_pools_a_session_has_the_server_s():
    assert listed(check({})) == [("config_a", 0), ("config_b", 1)]


@pytest.mark.parametrize(
    "config",
    [
        {"session_inter_op_thread_pool": [{"num_threads": 8}]},
        {"session_inter_op_thread_pool": [{"global_name": "config_a", "num_threads": 99}]},
        {"use_per_session_threads": True},
        {"use_per_session_threads": True, "inter_op_parallelism_threads": -1},
        {"intra_op_parallelism_threads": 8},
    ],
)
def test_what_is_within_the_limits_is_left_alone(config):
    checked = check(config)
    assert listed(checked) == listed(json_format.ParseDict(config, pb.ConfigProto())) or (
        "session_inter_op_thread_pool" not in config and not checked.use_per_session_threads
    )


@pytest.mark.parametrize(
    ("config", "wanted"),
    [
        ({"session_inter_op_thread_pool": [{"num_threads": 5}, {"num_threads": 4}]}, 9),
        ({"use_per_session_threads": True, "inter_op_parallelism_threads": 9}, 9),
        ({"inter_op_parallelism_threads": 10}, 10),
        ({"intra_op_parallelism_threads": 11}, 11),
    ],
)
def test_threads_are_limited(config, wanted):
    with pytest.raises(InvalidArgumentError, match=f"asks for {wanted} threads; .* may have 8"):
        check(config)


def test_the_default_size_fits_the_limit_however_many_cores_there_are():
    config = check({"session_inter_op_thread_pool": [{}]}, max_threads=1)
    assert config.inter_op_parallelism_threads == min(1, schedulable_cores())


def test_new_names_need_leave():
    config = {"session_inter_op_thread_pool": [{"global_name": "config_new", "num_threads": 1}]}
    with pytest.raises(InvalidArgumentError, match=r"no thread pool named 'config_new'.*config_a"):
        check(config)
    assert listed(check(config, allow_new_global_pools=True)) == [("config_new", 1)]


def test_negative_sizes_and_many_devices_are_refused():
    with pytest.raises(InvalidArgumentError, match="asks for num_threads=-1"):
        check({"session_inter_op_thread_pool": [{"num_threads": -1}]})
    with pytest.raises(InvalidArgumentError, match="asks for 65 CPU devices; at most 64"):
        check({"device_count": {"CPU": 65}})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"inter_op_parallelism_threads": -1}, True),
        ({"inter_op_parallelism_threads": 1}, False),
        ({"inter_op_parallelism_threads": -1, "session_inter_op_thread_pool": [{}]}, False),
    ],
)
def test_negative_parallelism_means_the_caller_s_thread(config, expected):
    assert runs_in_caller(json_format.ParseDict(config, pb.ConfigProto())) is expected
