"""Session and device factories: which one makes a session, and with which devices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import protos as pb
from runtime.api import (
    AlreadyExistsError,
    CancelledError,
    Code,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    SessionOptions,
    new_session,
    session_counts,
)
from runtime.devices import thread_pool_device
from runtime.devices.device import DEFAULT_PREFIX, Device
from runtime.devices.device_factory import DeviceFactory, DeviceFactoryRegistry
from runtime.devices.thread_pool_device import ThreadPoolDeviceFactory
from runtime.framework.kernel_registry import KernelRegistry
from runtime.registrations import session_factories
from runtime.sessions.direct.direct_session import DirectSession
from runtime.sessions.direct.direct_session_factory import DirectSessionFactory
from runtime.sessions.runtime_session import RuntimeSession
from runtime.sessions.session_factory import SessionFactory, SessionFactoryRegistry
from tests.unit.runtime.sessions.graphs import X, direct_session, g1


class Accepting(SessionFactory):
    """Accepts one target."""

    def __init__(self, target: str) -> None:
        self.target = target

    def accepts_options(self, options: SessionOptions) -> bool:
        return options.target == self.target

    def new_session(self, options: SessionOptions) -> RuntimeSession:
        raise AssertionError("not called here")


@pytest.mark.parametrize("target", ["local", "foo://x", "abc"])
def test_a_target_that_nobody_accepts(target: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        new_session(SessionOptions(target))
    text = caught.value.message
    assert text.startswith("No session factory registered for the given session options: {target: ")
    assert "Registered factories are {DIRECT_SESSION, GRPC_SESSION, HTTP_SESSION}." in text


def test_a_target_that_two_accept() -> None:
    registry = SessionFactoryRegistry()
    registry.register("ONE", Accepting("t"))
    registry.register("TWO", Accepting("t"))
    with pytest.raises(InternalError, match="Multiple session factories registered") as caught:
        registry.get_factory(SessionOptions("t"))
    assert "Candidate factories are {ONE, TWO}." in caught.value.message


def test_a_type_is_registered_once() -> None:
    registry = SessionFactoryRegistry()
    registry.register("ONE", Accepting("t"))
    with pytest.raises(AlreadyExistsError, match="registered under ONE"):
        registry.register("ONE", Accepting("u"))


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("", "DirectSessionFactory"),
        ("grpc://localhost:1", "RemoteSessionFactory"),
        ("http://localhost:1", "RemoteSessionFactory"),
        ("https://localhost:1", "RemoteSessionFactory"),
    ],
)
def test_targets_and_their_factories(target: str, name: str) -> None:
    factory = session_factories().get_factory(SessionOptions(target))
    assert type(factory).__name__ == name


class Fixed(DeviceFactory):
    """Makes one device of a type."""

    def __init__(self, device_type: str) -> None:
        self.device_type = device_type

    def create_devices(self, config: pb.ConfigProto, name_prefix: str) -> list[Device]:
        return [Device(f"{name_prefix}/device:{self.device_type}:0", self.device_type, 1)]


def registry_of(*rows: tuple[str, DeviceFactory, int]) -> DeviceFactoryRegistry:
    registry = DeviceFactoryRegistry()
    for row in rows:
        registry.register(*row)
    return registry


def types_of(devices: Sequence[Device]) -> list[str]:
    return [device.device_type for device in devices]


def test_a_higher_priority_replaces_and_a_lower_is_ignored() -> None:
    first, better, worse = Fixed("CPU"), Fixed("CPU"), Fixed("CPU")
    registry = registry_of(("CPU", first, 60), ("CPU", better, 70), ("CPU", worse, 50))
    assert registry.priority("CPU") == 70
    assert registry.priority("GPU") == -1


def test_an_equal_priority_is_refused() -> None:
    registry = registry_of(("GPU", Fixed("GPU"), 210))
    with pytest.raises(AlreadyExistsError) as caught:
        registry.register("GPU", Fixed("GPU"), 210)
    assert caught.value.message == (
        "Duplicate registration of device factory for type GPU with the same priority 210"
    )


def test_cpu_comes_first_and_must_be_there() -> None:
    with_gpu = registry_of(("GPU", Fixed("GPU"), 210), ("CPU", ThreadPoolDeviceFactory(), 60))
    assert types_of(with_gpu.add_devices(pb.ConfigProto())) == ["CPU", "GPU"]
    without = registry_of(("GPU", Fixed("GPU"), 210))
    with pytest.raises(NotFoundError, match="CPU Factory not registered"):
        without.add_devices(pb.ConfigProto())


def test_device_counts() -> None:
    two = direct_session(g1(), pb.ConfigProto(device_count={"CPU": 2, "TPU": 3}))
    assert [device.name for device in two.list_devices()] == [
        f"{DEFAULT_PREFIX}/device:CPU:0",
        f"{DEFAULT_PREFIX}/device:CPU:1",
    ]
    assert {device.memory_limit for device in two.list_devices()} == {268435456}
    for count in (0, -1):
        with pytest.raises(NotFoundError, match="No CPU devices are available in this process"):
            direct_session(config=pb.ConfigProto(device_count={"CPU": count}))


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
    factory = DirectSessionFactory(
        registry_of(("CPU", ThreadPoolDeviceFactory(), 60)), KernelRegistry()
    )
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


def test_numa_affinity_spreads_devices_over_the_nodes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(thread_pool_device, "num_numa_nodes", lambda: 2)
    config = pb.ConfigProto(device_count={"CPU": 3})
    assert [each.locality.numa_node for each in direct_session(config=config).list_devices()] == [
        0, 0, 0,
    ]  # fmt: skip
    config.experimental.use_numa_affinity = True
    with caplog.at_level("INFO"):
        devices = direct_session(config=config).list_devices()
    assert [each.locality.numa_node for each in devices] == [0, 1, 0]
    assert caplog.messages == [
        "Only 2 NUMA nodes visible in system,  assigning device "
        f"{DEFAULT_PREFIX}/device:CPU:2 to NUMA node 0"
    ]


def test_this_machine_has_a_numa_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert thread_pool_device.num_numa_nodes() >= 1
    monkeypatch.setattr(thread_pool_device, "_NODES", "/nowhere")
    assert thread_pool_device.num_numa_nodes() == 1


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


def test_sessions_are_counted_from_their_making_to_their_close() -> None:
    created, living = session_counts.created(), session_counts.open()
    first, second = direct_session(), direct_session()
    first.close()
    first.destroy()
    kind = "DIRECT_SESSION"
    assert session_counts.created()[kind] == created.get(kind, 0) + 2
    assert session_counts.open()[kind] == living.get(kind, 0) + 1
    second.close()
    remote = new_session(SessionOptions("http://localhost:1"))
    remote.close()
    assert session_counts.created()["HTTP_SESSION"] == created.get("HTTP_SESSION", 0) + 1
    assert session_counts.open()["HTTP_SESSION"] == living.get("HTTP_SESSION", 0)
