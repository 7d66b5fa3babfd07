"""What a step reports, and where it may run."""

from __future__ import annotations

import numpy as np

import protos as pb
from tests.integration.targets.graphs import chain
from tests.integration.targets.target import Target

X = {"x:0": np.float32(3)}


def test_a_full_trace_names_the_nodes(target: Target) -> None:
    session = target.session(chain())
    metadata = pb.RunMetadata()
    options = pb.RunOptions(trace_level=pb.RunOptions.FULL_TRACE)
    assert session.run(X, ["n:0"], options=options, metadata=metadata) == [-6]
    device = metadata.step_stats.dev_stats[0]
    assert device.device.upper().endswith("CPU:0")
    traced = {stats.node_name: stats for stats in device.node_stats}
    assert {"m", "n"} <= traced.keys()
    assert traced["m"].all_start_micros > 0


def test_nothing_is_reported_unless_asked(target: Target) -> None:
    session = target.session(chain())
    metadata = pb.RunMetadata()
    session.run(X, ["n:0"], metadata=metadata)
    assert not metadata.step_stats.dev_stats and not metadata.partition_graphs


def test_partition_graphs_are_reported(target: Target) -> None:
    session = target.session(chain())
    metadata = pb.RunMetadata()
    session.run(X, ["n:0"], options=pb.RunOptions(output_partition_graphs=True), metadata=metadata)
    names = {node.name for graph in metadata.partition_graphs for node in graph.node}
    assert {"m", "n"} <= names


def test_the_first_device_is_the_client_device(target: Target) -> None:
    devices = target.session(chain()).list_devices()
    assert devices[0].device_type == "CPU"
    assert devices[0].name.endswith("/device:CPU:0")
    assert devices[0].memory_limit > 0


def test_device_count_makes_devices(target: Target) -> None:
    if target.name == "tensorflow":
        return  # its devices are the server's
    session = target.session(chain(), device_count={"CPU": 2})
    assert [device.name[-5:] for device in session.list_devices()] == ["CPU:0", "CPU:1"]


def test_an_index_that_no_pool_has(target: Target) -> None:
    session = target.session(chain())
    options = pb.RunOptions(inter_op_thread_pool=7)
    if target.is_master:  # ignored
        assert session.run(X, ["n:0"], options=options) == [-6]
        return
    with target.raises("pool index out of range"):
        session.run(X, ["n:0"], options=options)
