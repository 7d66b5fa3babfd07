"""StepServer: the child's side of `step_process.py`. One thread runs steps, another cancels them.

Each message of the parent is a header and buffers:

| header | buffers |
| --- | --- |
| graph: number, feeds, fetches, targets, variables | ConfigProto, VersionDef, library, NodeDefs |
| run: number, step, arguments, variables: [[i, tensor]], memory | the tensors |
| forget: number | |

`memory` is the number of bytes that the step may have, or null.

Only `run` has a response: `{"values": […], "seconds": processor time}` and the tensors,
`{"error": [code, message, node]}`, or `{"refused": text}` if the step can't be compiled here.

The scheduler prefers a process that has just woken, whatever its nice value, until its time slice
ends (`foundation/processor_share.py`). Therefore a step yields the processor before it starts and
every few nodes. This was measured with 7,000 steps of a tiny model beside a low-priority chain of
small ops. If the chain did not yield, 75 to 120 steps had to wait for it. If it yielded, 8 to 25
steps had to wait, which is as many as without low-priority work.
"""

from __future__ import annotations

import collections
import os
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import protos as pb
from runtime.devices.device import Device
from runtime.executors.step import Step
from runtime.foundation.errors import CancelledError, InternalError, OpError
from runtime.foundation.message_channel import MessageChannel
from runtime.foundation.running_task import set_running_task
from runtime.framework.cancellation import RUN_CANCELLED, CancellationManager
from runtime.framework.io.file_gate import DenyAll
from runtime.framework.kernel_registry import KernelRegistry
from runtime.framework.memory_account import SessionAccount
from runtime.framework.resource_manager import DEFAULT_CONTAINER, ResourceHandle, ResourceManager
from runtime.framework.resources.variable import Variable
from runtime.graph.graph import Graph
from runtime.graph.graph_constructor import extend_graph
from runtime.graph.node import Node
from runtime.sessions.child_process.shared_area import SharedArea
from runtime.sessions.child_process.step_process import CANCEL
from runtime.sessions.child_process.tensor_frames import frames, receive_tensor, receive_tensors
from runtime.sessions.direct.kernel_states import KernelStates
from runtime.sessions.direct.step_compiler import StepCompiler

_GRAPH_BUFFERS = 3  # number of buffers before the nodes in a graph message
_GIVE_WAY_SECONDS = 0.00005  # a step yields the processor for this long before it starts
_MAX_CANCELLED_IDS = 16  # older ids are dropped; an id may come after its step has ended
# Yields the processor; returns at once if no other thread is ready to run on it.
_let_others_run: Callable[[], object] = getattr(os, "sched_yield", lambda: None)
MakeDevices = Callable[[pb.ConfigProto], Sequence[Device]]


class _YieldingCancellationManager(CancellationManager):
    """Yields the processor at each `check`, which executors call every few nodes."""

    __slots__ = ()

    def check(self) -> None:
        _let_others_run()
        super().check()


class _ReceivedStep:
    """A compiled step and the variables that it reads."""

    def __init__(
        self, header: dict[str, Any], buffers: collections.deque[bytes],
        make_devices: MakeDevices, kernels: KernelRegistry,
    ) -> None:  # fmt: skip
        config = pb.ConfigProto.FromString(buffers.popleft())
        config.log_device_placement = False  # the parent has logged the placement
        graph_def = pb.GraphDef(versions=pb.VersionDef.FromString(buffers.popleft()))
        graph_def.library.ParseFromString(buffers.popleft())
        while buffers:
            graph_def.node.add().ParseFromString(buffers.popleft())
        graph = extend_graph(Graph(), graph_def)
        devices = make_devices(config)
        compiler = StepCompiler(config, devices, kernels)
        self._variables = [graph.nodes[name] for name in header["variables"]]
        self._values: list[np.ndarray | ResourceHandle | None] = [None] * len(self._variables)
        feeds = [*header["feeds"], *(f"{name}:0" for name in header["variables"])]
        self._functions = compiler.functions(graph)
        self._executor = compiler.compile(graph, feeds, header["fetches"], header["targets"])
        self._state = KernelStates(ResourceManager(), "low_priority", devices)

    def set_variable(self, index: int, array: np.ndarray) -> None:
        self._values[index] = _fed_value(self._variables[index], array)

    def run(
        self, arguments: list[np.ndarray], cancellation: CancellationManager, memory: int | None
    ) -> list[Any]:
        # Only one step runs at a time, so the account of the state is that of the step.
        self._state.memory = None if memory is None else SessionAccount(memory, None, None)
        step = Step(self._state, cancellation, DenyAll(), self._functions)
        return self._executor.run(step, [*arguments, *self._values])


def _fed_value(node: Node, array: np.ndarray) -> np.ndarray | ResourceHandle:
    """Return the feed for a variable's node.

    It is a handle of a new Variable for VarHandleOp, and `array` for a reference variable.
    """
    if node.op != "VarHandleOp":
        return array
    variable = Variable(node.attr("dtype"), node.attr("shared_name"))
    variable.assign(array)
    return ResourceHandle(
        node.attr("container") or DEFAULT_CONTAINER,
        node.attr("shared_name"),
        Variable.type_name,
        dtype=node.attr("dtype"),
        value_shape=node.attr("shape"),
        resource=variable,
    )


class StepServer:
    """Serves the parent process until the connection is closed."""

    def __init__(
        self,
        connection: socket.socket,
        make_devices: MakeDevices,
        kernels: KernelRegistry,
        incoming: SharedArea,
        outgoing: SharedArea,
    ) -> None:
        self._channel = MessageChannel(connection)
        self._incoming = incoming
        self._outgoing = outgoing
        self._make_devices = make_devices
        self._kernels = kernels
        self._steps: dict[int, _ReceivedStep | str] = {}  # a str says why a step can't be compiled
        # The id and cancellation of the running step: written by the thread of `serve`, read by
        # the thread of `listen`. If a cancellation arrives before its step, the step's id is found
        # in `_cancelled`.
        self._current: tuple[int, CancellationManager] | None = None
        self._cancelled: collections.deque[int] = collections.deque(maxlen=_MAX_CANCELLED_IDS)

    def serve(self) -> None:
        """Run steps until the parent closes the connection."""
        try:
            self._channel.send({"ready": True})
            while True:
                self._answer(self._channel.receive())
        except ConnectionError:
            return

    def listen(self, control: socket.socket) -> None:
        """Cancel the steps that the parent names; end this process when it closes `control`.

        Must be called in a thread of its own.
        """
        while message := control.recv(CANCEL.size, socket.MSG_WAITALL):
            (step_id,) = CANCEL.unpack(message)
            self._cancelled.append(step_id)
            current = self._current
            if current is not None and current[0] == step_id:
                current[1].cancel(CancelledError(RUN_CANCELLED))
        os._exit(0)  # does not wait for the running kernel, which may take long

    def _answer(self, header: dict[str, Any]) -> None:
        if "graph" in header:
            self._steps[header["graph"]] = self._receive_step(header)
        elif "forget" in header:
            self._steps.pop(header["forget"], None)
        else:
            self._run(header)

    def _receive_step(self, header: dict[str, Any]) -> _ReceivedStep | str:
        buffers = collections.deque(
            self._channel.receive_buffer() for _ in range(_GRAPH_BUFFERS + header["nodes"])
        )
        try:
            return _ReceivedStep(header, buffers, self._make_devices, self._kernels)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    def _run(self, header: dict[str, Any]) -> None:
        step = self._steps[header["run"]]
        arguments = receive_tensors(self._channel, header["arguments"], self._incoming)
        values = [
            receive_tensor(self._channel, description) for _, description in header["variables"]
        ]
        if isinstance(step, str):
            del self._steps[header["run"]]
            self._channel.send({"refused": step})
            return
        for (index, _), value in zip(header["variables"], values, strict=True):
            step.set_variable(index, value)
        self._answer_run(header["step"], step, arguments, header.get("memory"))

    def _answer_run(
        self, step_id: int, step: _ReceivedStep, arguments: list[np.ndarray], memory: int | None
    ) -> None:
        cancellation = _YieldingCancellationManager()
        self._current = step_id, cancellation
        begin = time.perf_counter() + _GIVE_WAY_SECONDS
        while time.perf_counter() < begin:
            _let_others_run()
        started = time.thread_time()  # does not count time in which other threads run
        try:
            if step_id in self._cancelled:
                cancellation.cancel(CancelledError(RUN_CANCELLED))
            set_running_task(cancellation.error)
            values = step.run(arguments, cancellation, memory)
            seconds = time.thread_time() - started
            self._outgoing.begin()
            descriptions, buffers = frames(values, self._outgoing)
        except OpError as error:
            self._channel.send({"error": [int(error.code), error.message_without_node, error.node]})
        except Exception as error:
            failure = InternalError(f"{type(error).__name__}: {error}")
            self._channel.send({"error": [int(failure.code), failure.message_without_node, None]})
        else:
            self._channel.send({"values": descriptions, "seconds": seconds}, buffers)
        finally:
            set_running_task(())
            self._current = None
