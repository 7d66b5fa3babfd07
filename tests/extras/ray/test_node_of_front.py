"""`placement: ray`: the Ray node that a front end belongs to ends before the front end."""

from __future__ import annotations

import pathlib

from tests.extras.ray.front_ends import FrontEnds, until
from tests.ray_cluster import ray_cluster


def test_a_front_end_whose_own_node_has_ended(tmp_path: pathlib.Path) -> None:
    with ray_cluster(num_cpus=1) as cluster:
        server = FrontEnds(cluster, tmp_path)("own")  # ends with its cluster
        try:
            assert server.client.get("/readyz").status_code == 200
            cluster.head.kill_raylet(check_alive=False)
            until(lambda: "that this server belongs to" in server.client.get("/readyz").text)
            assert server.client.get("/readyz").status_code == 503
            assert "that this server belongs to" in server.wait_for("own_node: sessions on Ray")
            assert server.client.get("/healthz").status_code == 200  # it goes on until Ray ends it
        finally:
            server.end()
