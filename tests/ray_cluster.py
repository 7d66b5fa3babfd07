"""Ray clusters of several nodes on this machine, each address 127.0.0.1, without a dashboard."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
from collections.abc import Iterator
from typing import Any

import grpc

HAS_RAY = importlib.util.find_spec("ray") is not None
WITHOUT_RAY = "requires the extra: pip install 'runstep[ray]'"
OBJECT_STORE_BYTES = 100 * 2**20
# Between two requests of a client under load: clients that never wait take the processors from what
# is tested.
THINK_SECONDS = 0.005

# Processes of these tests have it, those of clusters too; whatever else runs here has not.
MARK = "RAY_CLUSTERS_OF_TESTS"
os.environ.setdefault(MARK, secrets.token_hex(8))

if HAS_RAY:  # read when Ray is imported
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Otherwise Ray replaces 127.0.0.1 by another address of the machine.
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
    # Otherwise actors have nice 15, and hardly run beside tests that keep the processors busy.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112 - its name
    # Otherwise the first program on a cluster has a worker started for each CPU, used or not.
    os.environ["RAY_prestart_worker_first_driver"] = "0"  # noqa: SIM112 - its name


class RayCluster:
    """A cluster whose nodes are groups of processes; `address` is its GCS's."""

    def __init__(self, **head: Any) -> None:
        from ray.cluster_utils import Cluster

        self._cluster = Cluster()
        self.nodes: dict[str, Any] = {}
        # Two processes less: no test has nodes scaled, or reads the logs of workers.
        self.head = self.add_node(
            include_dashboard=False, include_log_monitor=False, no_monitor=True, **head
        )
        self.address: str = self._cluster.address

    def add_node(self, num_cpus: int = 2, **node: Any) -> Any:
        """Start a node and wait until the cluster knows it."""
        return self._cluster.add_node(
            num_cpus=num_cpus,
            node_ip_address="127.0.0.1",
            object_store_memory=OBJECT_STORE_BYTES,
            **node,
        )

    def kill_node(self, node: Any) -> None:
        """Kill the processes of a node."""
        self._cluster.remove_node(node, allow_graceful=False)

    def num_actors(self) -> int:
        """The number of actors that are not dead."""
        return len(self.actors())

    def actors(self, name: str = "") -> dict[str, int]:
        """The process id of each actor that is not dead, by its id, asked without joining.

        `name` is in the names of their classes.
        """
        from ray.core.generated import gcs_pb2, gcs_service_pb2, gcs_service_pb2_grpc

        with grpc.insecure_channel(self.address) as channel:
            stub = gcs_service_pb2_grpc.ActorInfoGcsServiceStub(channel)
            told = stub.GetAllActorInfo(gcs_service_pb2.GetAllActorInfoRequest(), timeout=10)
        dead = gcs_pb2.ActorTableData.DEAD
        return {
            actor.actor_id.hex(): actor.pid
            for actor in told.actor_table_data
            if actor.state != dead and name in actor.class_name
        }

    @contextlib.contextmanager
    def claiming(self, **versions: str) -> Iterator[None]:
        """While the block runs, the cluster says that it is of other versions."""
        from ray.core.generated import gcs_service_pb2, gcs_service_pb2_grpc

        where = {"namespace": b"cluster", "key": b"CLUSTER_METADATA"}
        with grpc.insecure_channel(self.address) as channel:
            stub = gcs_service_pb2_grpc.InternalKVGcsServiceStub(channel)
            get = gcs_service_pb2.InternalKVGetRequest(**where)
            true = stub.InternalKVGet(get, timeout=10).value

            def claim(value: bytes) -> None:
                put = gcs_service_pb2.InternalKVPutRequest(**where, value=value, overwrite=True)
                stub.InternalKVPut(put, timeout=10)

            claim(json.dumps({**json.loads(true), **versions}).encode())
            try:
                yield
            finally:
                claim(true)

    def end(self) -> None:
        """End this program's connection and the cluster."""
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@contextlib.contextmanager
def ray_cluster(**head: Any) -> Iterator[RayCluster]:
    """A cluster of one node; further ones can be added."""
    cluster = RayCluster(**head)
    try:
        yield cluster
    finally:
        cluster.end()
