"""StepProcess: a child process that runs steps for the threads of a low-priority pool.

It has an interpreter lock of its own and the highest nice value. The thread that sends the feeds
waits for the response without holding the lock of this process. Before each part of this work it
waits at the priority gate. `step_processes.py` decides which steps run in a child.

Large feeds and results go through shared memory (`shared_area.py`), everything else through a
socket pair. Both are freed when the processes end.

Guarantees: a child serves one thread at a time; an error of a step in the child is raised here as
the same OpError; cancelling a step cancels it in the child, and kills the child if the step runs on
(`overdue_step.py`). The child ends when this process ends in any way.
"""

from __future__ import annotations

import collections
import contextlib
import logging
import select
import socket
import struct
import subprocess
import sys
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.executors.portable_step import PortableStep
from runtime.executors.step import Step
from runtime.foundation.errors import UnavailableError, error_for_code
from runtime.foundation.message_channel import Buffer, MessageChannel
from runtime.foundation.priority_gate import gate
from runtime.framework.allocation import tensor_limit
from runtime.sessions.child_process.call_process import ENDED_FROM_OUTSIDE, child_environment
from runtime.sessions.child_process.overdue_step import OverdueStep
from runtime.sessions.child_process.shared_area import SharedArea
from runtime.sessions.child_process.tensor_frames import copied_out, frames, receive_tensors
from runtime.sessions.child_process.variable_values import ChangedVariables, SentVariables

MAIN_MODULE = "runtime.step_process_main"
CANCEL = struct.Struct("<Q")  # message of the control socket: the id of the step to cancel
_MAX_STEPS = 64  # number of compiled steps that a child keeps, with their variables
_KILL_WAIT_SECONDS = 5.0  # the longest wait for a killed child

_log = logging.getLogger(__name__)


class ChildEndedError(UnavailableError):
    """A child has ended while it ran a step."""


class Answer(NamedTuple):
    """The response of a child to one step."""

    is_refused: bool  # true if the child can't compile the step
    values: list[np.ndarray]
    seconds: float  # seconds of processor time that the step took in the child


class _SentStep:
    """A step that a child has; it holds only a weak reference to the PortableStep.

    When the PortableStep is freed, the step's number is appended to `freed`.
    """

    def __init__(self, portable: PortableStep, freed: collections.deque[int]) -> None:
        number = portable.number
        self._portable = weakref.ref(portable, lambda _: freed.append(number))
        self.variables = SentVariables(portable)


class StepProcess:
    """One child process. One thread at a time may use it; any thread may call `close`."""

    def __init__(self, name: str) -> None:
        if not sys.executable:  # the interpreter is embedded in another program
            raise OSError("the interpreter has no program of its own")
        with contextlib.ExitStack() as opened:
            self._outgoing, self._incoming = SharedArea.create(), SharedArea.create()
            opened.callback(self._close_areas)
            ours, theirs = map(opened.enter_context, socket.socketpair())
            control, their_control = map(opened.enter_context, socket.socketpair())
            fds = [theirs.fileno(), their_control.fileno(), self._outgoing.fd, self._incoming.fd]
            arguments = [*map(str, fds), str(tensor_limit()), name]
            self._process = subprocess.Popen(
                # With -P, no module is imported from the current folder.
                [sys.executable, "-P", "-m", MAIN_MODULE, *arguments],
                pass_fds=[fd for fd in fds if fd >= 0],
                stdin=subprocess.DEVNULL,
                env=child_environment(),
            )
            opened.pop_all()
        theirs.close()
        their_control.close()
        self._socket = ours
        self._control = control
        self._channel = MessageChannel(ours)
        self._is_ready = False
        self._overdue = OverdueStep(self.kill)
        self.is_alive = True
        self.steps = 0  # number of steps that were sent, whether they succeeded or not
        self._sent: dict[int, _SentStep] = {}  # key: the step's number; the newest run is last
        # The numbers of steps whose PortableStep was freed; the child need not keep these steps.
        self._freed: collections.deque[int] = collections.deque()

    def is_ready(self) -> bool:
        """Return whether the child is alive and has reported that it is ready for steps."""
        if not self._is_ready and self.is_alive and self._has_message():
            try:
                self._channel.receive()
                self._is_ready = True
            except ConnectionError:
                self.close()
        return self._is_ready and self.is_alive

    def _has_message(self) -> bool:
        # Not select.select, which refuses descriptors from 1024 on.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def run(
        self,
        portable: PortableStep,
        step: Step,
        arguments: Sequence[Any],
    ) -> Answer | None:
        """Run a step in the child and wait for the response.

        Return None if the step must run in this process, because a variable has no value or the
        child ended before it had received the whole step. Raises the OpError of the step, and
        ChildEndedError if the child ends after it has received the whole step.
        """
        self._overdue.begin(step.step_id)
        token = step.cancellation.add_callback(lambda: self._cancel(step.step_id))
        if token is None:
            step.cancellation.check()
        try:
            gate.pass_through()
            if not self._send(portable, step, arguments):
                return None
            answer = self._channel.receive()
            gate.pass_through()
            values = copied_out(
                receive_tensors(self._channel, answer.get("values", ()), self._incoming)
            )
        except OSError as error:  # includes ConnectionError
            self.close()
            raise ChildEndedError(
                f"The process that ran this low-priority step has ended: {error}"
            ) from None
        except BaseException:  # a message may have been sent or received in part
            self.close()
            raise
        finally:
            step.cancellation.remove_callback(token)
            self._overdue.end()
        if "refused" in answer:
            _log.warning("A low-priority step stays in this process: %s", answer["refused"])
            self._sent.pop(portable.number)
        if "error" in answer:
            raise error_for_code(*answer["error"])
        return Answer("refused" in answer, values, answer.get("seconds", 0.0))

    def _send(self, portable: PortableStep, step: Step, arguments: Sequence[Any]) -> bool:
        """Send a step; return False if a variable has no value or the child has ended."""
        sent = self._sent.get(portable.number) or _SentStep(portable, self._freed)
        variables = sent.variables.changed(step)
        if variables is None:
            return False
        try:
            while self._freed:
                self._forget(self._freed.popleft())
            if self._sent.pop(portable.number, None) is None:
                while len(self._sent) >= _MAX_STEPS:
                    self._forget(next(iter(self._sent)))
                self._send_graph(portable)
            self._sent[portable.number] = sent
            self._send_run(portable.number, step, arguments, variables)
        except OSError:  # the child can't have started the step without the whole message
            self.close()
            return False
        sent.variables.note_sent(variables)
        self.steps += 1
        return True

    def _send_run(
        self, number: int, step: Step, arguments: Sequence[Any], variables: ChangedVariables
    ) -> None:
        self._outgoing.begin()
        sent, buffers = frames(arguments, self._outgoing)
        changed, arrays = frames(variables.arrays)  # not in the area, because the child keeps them
        header = {
            "run": number,
            "step": step.step_id,
            "arguments": sent,
            "variables": list(zip(variables.indices, changed, strict=True)),
            "memory": None if step.memory is None else step.memory.left,
        }
        self._channel.send(header, [*buffers, *arrays])

    def _send_graph(self, portable: PortableStep) -> None:
        buffers: list[Buffer] = [
            portable.config.SerializeToString(),
            portable.graph.versions.SerializeToString(),
            portable.library().SerializeToString(),
        ]
        # Each node has a buffer of its own, because serializing all nodes at once would hold the
        # interpreter lock for long.
        buffers += [node.SerializeToString() for node in portable.node_defs()]
        header = {
            "graph": portable.number,
            "feeds": portable.feeds,
            "fetches": portable.fetches,
            "targets": portable.targets,
            "variables": [node.name for node in portable.variables],
            "nodes": len(buffers) - 3,
        }
        self._channel.send(header, buffers)

    def _forget(self, number: int) -> None:
        if self._sent.pop(number, None) is not None:
            self._channel.send({"forget": number})

    def _cancel(self, step_id: int) -> None:
        with contextlib.suppress(OSError):  # the child has ended, or its socket is full
            self._control.send(CANCEL.pack(step_id), socket.MSG_DONTWAIT)
        self._overdue.cancelled(step_id)

    def close(self) -> None:
        """Close the connection, so that the child ends; a `run` in progress raises an error.

        The error is UnavailableError.
        """
        self.is_alive = False
        self._channel.close()
        self._control.close()

    def kill(self) -> None:
        """Close the connection and kill the child."""
        self.close()
        self._process.kill()

    def was_killed(self) -> bool:
        """Return whether a child whose connection has ended was killed, and did not crash.

        Also false if it is still running.
        """
        try:
            return self._process.wait(_KILL_WAIT_SECONDS) in ENDED_FROM_OUTSIDE
        except subprocess.TimeoutExpired:
            return False

    def end(self, seconds: float = 0.0) -> int | None:
        """Close the connection, wait for the child and free its resources; return its exit code.

        If the child has not ended after `seconds`, it is killed. Returns None if it is still
        running then.
        """
        self.close()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_KILL_WAIT_SECONDS)
        self._channel.release()
        self._close_areas()
        return self._process.returncode

    def _close_areas(self) -> None:
        self._outgoing.close()
        self._incoming.close()
