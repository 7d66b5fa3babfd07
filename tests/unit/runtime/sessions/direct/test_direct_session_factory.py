"""Configurations of new sessions: metadata, executor types, unknown fields."""

from __future__ import annotations

import numpy as np
import pytest

import protos as pb
from runtime.api import CancelledError, Code, InvalidArgumentError, OpError, SessionOptions
from runtime.devices.device_factory import DeviceFactoryRegistry
from runtime.devices.thread_pool_device import ThreadPoolDeviceFactory
from runtime.framework.kernel_registry import KernelRegistry
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.direct.direct_session_factory import DirectSessionFactory
from tests.unit.runtime.sessions.graphs import X, direct_session, g1


def with_metadata(name: str, version: int) -> pb.ConfigProto:
    config = pb.ConfigProto()
    config.experimental.session_metadata.name = name
    config.experimental.session_metadata.version = version
    return config


def test_session_metadata_is_unique_among_living_sessions() -> None:
    first = direct_session(g1(), with_metadata("unique", 1))
    with pytest.raises(InvalidArgumentError, match="has already been created"):
        direct_session(config=with_metadata("unique", 1))
    second = direct_session(config=with_metadata("unique", 2))
    with pytest.raises(InvalidArgumentError, match="Session version shouldn't be negative"):
        direct_session(config=with_metadata("unique", -1))
    metadata = pb.RunMetadata()
    first.run({"x": 1.0}, ["m"], (), None, metadata)
    assert metadata.session_metadata == pb.SessionMetadata(name="unique", version=1)
    first.close()
    third = direct_session(config=with_metadata("unique", 1))
    second.close()
    third.close()


def test_an_empty_name_is_a_name() -> None:
    first = direct_session(config=with_metadata("", 0))
    with pytest.raises(InvalidArgumentError, match="has already been created"):
        direct_session(config=with_metadata("", 0))
    direct_session()  # without metadata: never in conflict
    first.close()


def test_reset_closes_the_factory_s_sessions() -> None:
    devices = DeviceFactoryRegistry()
    devices.register("CPU", ThreadPoolDeviceFactory(), 60)
    factory = DirectSessionFactory(devices, KernelRegistry())
    sessions = [factory.new_session(SessionOptions()) for _ in range(2)]
    factory.reset(SessionOptions(), ["anything"])
    for session in sessions:
        with pytest.raises(CancelledError, match="Session has been closed"):
            session.list_devices()
    assert isinstance(factory.new_session(SessionOptions()), DirectSession)


def test_unknown_executor_types_are_refused() -> None:
    config = pb.ConfigProto()
    config.experimental.executor_type = "NO_SUCH"
    with pytest.raises(OpError) as caught:
        direct_session(config=config)
    assert caught.value.code is Code.NOT_FOUND
    assert "Registered executor types: DEFAULT, SINGLE_THREADED_EXECUTOR, DATAFLOW" in str(
        caught.value
    )


def test_vendor_fields_of_the_config_are_kept() -> None:
    config = pb.ConfigProto(
        session_handle="mine",
        tensor_fuse=True,
        global_io_parallelism_threads=2,
        run_graph_mode=True,
    )
    unheard_of = config.SerializeToString() + b"\xb8\x3e\x05"  # field 999, a number
    session = direct_session(g1(), pb.ConfigProto.FromString(unheard_of))
    assert session.run({"x": 1.0}, ["m"]) == [2]
    assert session.options.config.session_handle == "mine"
    assert session.options.config.SerializeToString() == unheard_of


def test_what_nothing_reads_is_kept() -> None:
    config = pb.ConfigProto(
        session_handle="h", tensor_fuse=True, global_io_parallelism_threads=3, run_graph_mode=True
    )
    rewriter = config.graph_options.rewrite_options
    rewriter.auto_mixed_precision = rewriter.auto_mixed_precision_onednn_bfloat16 = 1
    kept = pb.ConfigProto.FromString(config.SerializeToString())
    session = direct_session(g1(), kept)
    assert session.options.config == config
    assert session.run({"x": X}, ["n"])[0].dtype == np.float32
