"""Where sessions are, and what sessions of a node have in common."""

from __future__ import annotations

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from runtime.api import (
    AbortedError,
    InvalidArgumentError,
    ResourceExhaustedError,
    RuntimeSession,
    SessionOptions,
    load_saved_model,
)
from runtime.sessions.ray_cluster import hosts as hosts_module
from runtime.sessions.ray_cluster.hosts import Host
from runtime.sessions.ray_cluster.this_actor import own_node_id
from tests.extras.ray.conftest import Open
from tests.integration.targets.graphs import counter, identity, queue
from tests.ray_cluster import RayCluster, ray_cluster

X = {"x:0": np.float32(3)}


class Others:
    """Takes the CPUs of a node."""

    def node(self) -> str:
        return own_node_id()


def host_of(session: RuntimeSession) -> Host:
    host = session._host  # type: ignore[attr-defined]
    assert isinstance(host, Host)
    return host


def described(session: RuntimeSession) -> dict[str, Any]:
    found: dict[str, Any] = host_of(session).call("describe", None, 30)
    return found


def has_session(host: Host, handle: str) -> bool:
    """Whether a session is in a host; their number may change, because others close late there."""
    try:
        host.call("list_devices", handle, 30)
    except AbortedError as error:
        assert f"Session {handle} is not found" in error.message
        return False
    return True


def handle_of(session: RuntimeSession) -> str:
    handle = session._handle  # type: ignore[attr-defined]
    assert handle
    return str(handle)


def node_of(session: RuntimeSession) -> str:
    return session.list_devices()[0].physical_device_desc.split()[1]


def pool(name: str, threads: int) -> dict[str, Any]:
    return {"session_inter_op_thread_pool": [{"global_name": name, "num_threads": threads}]}


@pytest.mark.parametrize(
    ("query", "zone"),
    [
        ("?label.zone=b", "b"),
        ("?resources.tpu=1", "b"),
        ("?num_cpus=2&label.zone=c", "c"),
        ("?isolation=actor&label.zone=c", "c"),
        ("?isolation=actor&resources.tpu=0.5", "b"),
        ("?isolation=actor&num_cpus=0&memory=64MiB&label.zone=b", "b"),
        ("?isolation=actor&num_cpus=0&resources.GPU=1", "b"),
    ],
)
def test_a_session_is_where_its_target_says(
    cluster: RayCluster, open_session: Open, query: str, zone: str
) -> None:
    session = open_session(query)
    assert node_of(session) == cluster.nodes[zone].node_id
    assert session.run(X, ["n:0"]) == [-6]


@pytest.mark.parametrize("isolation", ["host", "actor"])
def test_a_node_by_its_id(cluster: RayCluster, open_session: Open, isolation: str) -> None:
    wanted = cluster.nodes["c"].node_id
    assert node_of(open_session(f"?node={wanted}&isolation={isolation}")) == wanted


def test_sessions_spread_over_the_cpus(cluster: RayCluster, open_session: Open) -> None:
    sessions = [open_session() for _ in range(5)]
    ids = [node_of(session) for session in sessions]
    counts = [ids.count(cluster.nodes[zone].node_id) for zone in "abc"]
    assert counts == [2, 1, 2]
    assert ids[0] == cluster.head.node_id  # the program's own, when all are equal
    assert len({described(session)["pid"] for session in sessions}) == 3


def test_sessions_that_are_opened_together_spread_as_well(
    cluster: RayCluster, open_session: Open
) -> None:
    with ThreadPoolExecutor(5) as threads:
        sessions = list(threads.map(lambda _: open_session(), range(5)))
    ids = [node_of(session) for session in sessions]
    assert [ids.count(cluster.nodes[zone].node_id) for zone in "abc"] == [2, 1, 2]


def test_an_isolated_session_tells_the_node_on_which_ray_has_put_it(
    cluster: RayCluster, open_session: Open
) -> None:
    head = cluster.head.node_id
    open_session().close()  # joins the cluster
    here = NodeAffinitySchedulingStrategy(head, soft=False)
    others = ray.remote(Others).options(num_cpus=2, scheduling_strategy=here).remote()
    try:
        assert ray.get(others.node.remote(), timeout=60) == head
        session = open_session("?isolation=actor&num_cpus=1")
        assert host_of(session).node.id == node_of(session) != head
        assert host_of(session).node.id[:8] in host_of(session).name
    finally:
        ray.kill(others)


def test_a_named_pool_is_the_nodes(open_session: Open) -> None:
    first = open_session("?label.zone=b", **pool("shared", 2))
    second = open_session("?label.zone=b", **pool("shared", 2))
    assert described(first)["pid"] == described(second)["pid"]
    assert "shared" in described(first)["thread_pools"]
    with pytest.raises(InvalidArgumentError, match="shared"):
        open_session("?label.zone=b", **pool("shared", 3))
    open_session("?label.zone=c", **pool("shared", 3))
    open_session("?label.zone=b&isolation=actor&num_cpus=0", **pool("shared", 3))


PROGRAM = """
import sys, numpy as np
import tests.ray_cluster
from runtime.api import SessionOptions, new_session
from tests.integration.targets.graphs import chain
session = new_session(SessionOptions(sys.argv[1]))
session.create(chain())
fetched = session.run({"x:0": np.float32(3)}, ["n:0"])
print(fetched, session._host.call("describe")["pid"], session._handle)
"""


def test_programs_share_a_host_and_leave_nothing_in_it(open_session: Open) -> None:
    mine = open_session("?label.zone=b")
    target = mine.options.target  # type: ignore[attr-defined]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, target],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    fetched, pid, handle = done.stdout.split()
    assert (fetched, pid) == ("[np.float32(-6.0)]", str(described(mine)["pid"]))
    assert has_session(host_of(mine), handle_of(mine))
    assert not has_session(host_of(mine), handle)


def test_sessions_of_a_node_share_no_state(open_session: Open) -> None:
    first, second = (open_session("?label.zone=b", counter("v")) for _ in range(2))
    assert described(first)["pid"] == described(second)["pid"]
    first.run({}, [], ["init"])
    second.run({}, [], ["init"])
    first.run({}, [], ["add"])
    assert first.run({}, ["read:0"]) == [11]
    assert second.run({}, ["read:0"]) == [10]


def test_an_isolated_session_has_a_process_and_cpus_of_its_own(open_session: Open) -> None:
    shared = open_session("?label.zone=c")
    isolated = open_session("?label.zone=c&isolation=actor&num_cpus=2")
    pid = described(isolated)["pid"]
    assert described(shared)["pid"] != pid
    assert described(isolated)["sessions"] == 1
    isolated.close()
    again = open_session("?label.zone=c&isolation=actor&num_cpus=2")  # the CPUs are free again
    assert again.run(X, ["n:0"]) == [-6]
    assert described(again)["pid"] != pid
    assert has_session(host_of(again), handle_of(again))
    assert not has_session(host_of(shared), handle_of(again))


def test_an_isolated_session_that_finds_no_room(
    open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_session("?label.zone=b&isolation=actor&num_cpus=1")
    monkeypatch.setattr(hosts_module, "START_SECONDS", 2.0)
    with pytest.raises(
        ResourceExhaustedError, match=r"No actor with CPU=1 could start within 2 s: the nodes"
    ):
        open_session("?label.zone=b&isolation=actor&num_cpus=1")


def test_large_tensors_are_read_where_they_are(open_session: Open) -> None:
    session = open_session("?label.zone=a", identity("float32"))
    fed = np.arange(1 << 20, dtype=np.float32)
    (fetched,) = session.run({"x:0": fed}, ["y:0"])
    np.testing.assert_array_equal(fetched, fed)
    assert not fetched.flags.owndata and not fetched.flags.writeable
    (small,) = session.run({"x:0": fed[:4]}, ["y:0"])
    assert small.tolist() == [0, 1, 2, 3]


def test_state_may_keep_what_was_fed(open_session: Open) -> None:
    """A queue refers to the object store's memory until the element is taken."""
    session = open_session("?label.zone=a", queue("q"))
    arrays = [np.full(1 << 18, index, np.float32) for index in range(2)]
    for array in arrays:
        session.run({"value:0": array}, [], ["enqueue"])
    gc.collect()
    for array in arrays:
        np.testing.assert_array_equal(session.run({}, ["dequeue:0"])[0], array)


def test_a_node_loads_a_model_once(
    cluster: RayCluster, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if its folder is relative to this program's, which is not the host's."""
    monkeypatch.chdir("examples")
    options = SessionOptions(f"ray://{cluster.address}?label.zone=c")
    bundle = load_saved_model(options, None, "models/half_plus_two/1", ["serve"])
    opened, is_shared = bundle.open_session(options)
    try:
        assert is_shared
        assert described(opened)["models"] == 1
        feeds = {"serving_default_x:0": np.float32([2])}
        for session in (bundle.session, opened):
            assert session.run(feeds, ["StatefulPartitionedCall_2:0"])[0].tolist() == [3]
    finally:
        bundle.session.close()
        opened.close()


def test_a_host_without_sessions_ends(
    cluster: RayCluster, open_session: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    monkeypatch.setattr(hosts_module, "HOST_IDLE_SECONDS", 0.1)
    cluster.add_node(labels={"zone": "d"})
    session = open_session("?label.zone=d")
    host = host_of(session)
    session.close()
    with pytest.raises(ray.exceptions.RayActorError):  # the call ends when the actor does
        while True:
            ray.get(host.actor.cancel.remote(("", 0)), timeout=30)
    assert open_session("?label.zone=d").run(X, ["n:0"]) == [-6]


JOINED = """
import signal, sys, tests.ray_cluster
import ray
from runtime.api import SessionOptions, new_session
if sys.argv[2] == "joined":
    ray.init(sys.argv[1], log_to_driver=False)
handler = signal.getsignal(signal.SIGTERM)
session = new_session(SessionOptions("ray://" + sys.argv[1]))
assert signal.getsignal(signal.SIGTERM) is handler
new_session(SessionOptions("ray://auto")).close()
session.close()
print(ray.is_initialized())
"""


@pytest.mark.parametrize("how", ["joined", "alone"])
def test_a_program_stays_as_it_is(cluster: RayCluster, how: str) -> None:
    """It may have joined the cluster by itself, and its handlers of signals stay."""
    done = subprocess.run(
        [sys.executable, "-c", JOINED,
         cluster.address, how],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "True\n", done.stderr


MOVING = """
import sys, numpy as np
import tests.ray_cluster
from runtime.api import SessionOptions, new_session
from tests.integration.targets.graphs import chain
for address in (*sys.argv[1:], *sys.argv[1:]):
    session = new_session(SessionOptions(f"ray://{address}"))
    session.create(chain())
    print(session.run({"x:0": np.float32(3)}, ["n:0"])[0])
    session.close()
"""


def test_a_program_without_open_sessions_may_change_the_cluster(cluster: RayCluster) -> None:
    with ray_cluster(num_cpus=1) as other:
        done = subprocess.run(
            [sys.executable, "-c", MOVING, cluster.address, other.address],
            capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    assert done.stdout.split() == ["-6.0"] * 4, done.stderr


def test_a_silent_isolated_session_is_kept_alive(open_session: Open) -> None:
    session = open_session("?label.zone=a&isolation=actor&num_cpus=0")
    assert host_of(session) in hosts_module.hosts._in_use()
    session.close()
    assert hosts_module.hosts._in_use() == []
