"""These tests require the extra `ray`; they start clusters whose addresses are all 127.0.0.1."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import protos as pb
from runtime.api import OpError, RuntimeSession, SessionOptions, new_session
from tests.integration.targets.graphs import chain
from tests.ray_cluster import HAS_RAY, WITHOUT_RAY, RayCluster, ray_cluster

if not HAS_RAY:
    pytest.skip(WITHOUT_RAY, allow_module_level=True)

import ray

from tests.extras.ray.deployments import Commands
from tests.extras.ray.front_ends import FrontEnds
from tests.extras.ray.traces import own_temporary_folder

# A node that can't be reached is given up after three seconds instead of fifteen.
QUICK = {"health_check_period_ms": 1000, "health_check_failure_threshold": 3}
Open = Callable[..., RuntimeSession]


# Clusters are those of all modules, because to start a node takes a second and more. They cost
# nothing while nobody uses them. A program belongs to one cluster at a time: a module leaves it.


@pytest.fixture(scope="session")
def three_nodes() -> Iterator[RayCluster]:
    """Three nodes: the head in zone a; one in zone b with a `tpu` and a GPU; one in zone c."""
    with ray_cluster(labels={"zone": "a"}, _system_config=QUICK) as started:
        started.nodes = {
            "a": started.head,
            "b": started.add_node(
                labels={"zone": "b"}, resources={"tpu": 1}, num_cpus=1, num_gpus=1
            ),
            "c": started.add_node(labels={"zone": "c"}, num_cpus=2),
        }
        yield started


@pytest.fixture(scope="module")
def cluster(three_nodes: RayCluster) -> Iterator[RayCluster]:
    """Three nodes, whose cluster this program joins when it opens a session."""
    yield three_nodes
    ray.shutdown()


@pytest.fixture
def open_session(cluster: RayCluster) -> Iterator[Open]:
    """Opens sessions on a graph (by default `chain`), which are closed when the test ends."""
    made: list[RuntimeSession] = []

    def opened(
        query: str = "", graph: pb.GraphDef | None = None, /, address: str = "", **config: Any
    ) -> RuntimeSession:
        options = {"operation_timeout_in_ms": 60_000} | config
        target = f"ray://{address or cluster.address}{query}"
        session = new_session(SessionOptions(target, pb.ConfigProto(**options)))
        made.append(session)
        session.create(graph or chain())
        return session

    yield opened
    for session in made:
        try:
            session.close()
        except OpError:
            continue


@pytest.fixture(scope="session")
def temporary() -> Iterator[pathlib.Path]:
    """The folder for temporary files of `one_node` and of the commands, but for Ray's.

    It has a short name, because that of a Unix socket can't be long.
    """
    with tempfile.TemporaryDirectory(prefix="t") as folder:
        yield pathlib.Path(folder)


@pytest.fixture(scope="session")
def commands(temporary: pathlib.Path) -> Iterator[Commands]:
    """A program that runs `runstep deploy ray`."""
    with own_temporary_folder(temporary):
        started = Commands()
    yield started
    started.end()


@pytest.fixture(scope="session")
def one_node(commands: Commands, temporary: pathlib.Path) -> Iterator[RayCluster]:
    """A node in zone a; what tests deploy on it they remove."""
    with own_temporary_folder(temporary):
        started = RayCluster(num_cpus=4, labels={"zone": "a"}, _system_config=QUICK)
    yield started
    started.end()


@pytest.fixture(scope="session")
def two_nodes() -> Iterator[RayCluster]:
    """A head on which no sessions are, and two nodes."""
    with ray_cluster(num_cpus=0, _system_config=QUICK) as started:
        started.nodes = {name: started.add_node(num_cpus=1) for name in ("a", "b")}
        yield started


@pytest.fixture(scope="module")
def front_cluster(two_nodes: RayCluster) -> Iterator[RayCluster]:
    """Two nodes for sessions, to whose cluster this program belongs."""
    ray.init(address=two_nodes.address, namespace="runstep", log_to_driver=False)
    yield two_nodes
    ray.shutdown()


@pytest.fixture
def front(front_cluster: RayCluster, tmp_path: pathlib.Path) -> Iterator[FrontEnds]:
    """Starts front ends with sessions on the nodes of the cluster."""
    started = FrontEnds(front_cluster, tmp_path)
    yield started
    started.end()
