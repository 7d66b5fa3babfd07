"""StepProcess: a child process that runs steps for the threads of a low-priority pool.

All threads of a process share one interpreter lock, so low-priority Python code delays normal
steps. A step that is portable (`portable_step.py`) and long enough runs in a child process instead,
which has an interpreter lock of its own and the highest nice value. A thread of the pool
sends the feeds and waits for the response without holding the lock. Before each part of this work
the thread waits at the priority gate.

Large feeds and results go through shared memory (`shared_area.py`), everything else through a
socket pair. Both are freed when the processes end.

Guarantees: thread-safe; a child serves one thread at a time; an error of a step in the child is
raised here as the same OpError; cancelling a step cancels it in the child, and kills the child if
the step runs on (`overdue_step.py`). When a child is killed, its
step, which only reads, runs again in this process; it fails with UNAVAILABLE if the child crashed,
because it would crash this process too. Steps run in this process if no child is ready or if the
child can't compile them. The children end when their pool shuts down and when this process
ends in any way.
"""

from __future__ import annotations

import atexit
import collections
import contextlib
import logging
import math
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.executors.memory_checks import MOST_LARGE_BYTES
from runtime.executors.portable_step import PortableStep
from runtime.executors.step import Executor, Step
from runtime.foundation.errors import UnavailableError, error_for_code
from runtime.foundation.message_channel import Buffer, MessageChannel
from runtime.foundation.priority_gate import gate
from runtime.foundation.thread_pool import ThreadPool
from runtime.framework.allocation import tensor_limit
from runtime.sessions.child_process.call_process import ENDED_FROM_OUTSIDE, child_environment
from runtime.sessions.child_process.overdue_step import OverdueStep
from runtime.sessions.child_process.shared_area import SharedArea
from runtime.sessions.child_process.tensor_frames import copied_out, frames, receive_tensors
from runtime.sessions.child_process.variable_values import ChangedVariables, SentVariables

MAIN_MODULE = "runtime.step_process_main"
CANCEL = struct.Struct("<Q")  # message of the control socket: the id of the step to cancel
_MAX_STEPS = 64  # number of compiled steps that a child keeps, with their variables
WORTH_SECONDS = 0.0002  # a step that takes less in this process is not worth sending to a child
# The first run compiles a step and the second generates its Python, so the times of these runs
# count only if they are at least _SURELY_SECONDS: such a step is long without this work too.
_WARM_UP_RUNS = 3
_SURELY_SECONDS = 0.05
# The pause between the end of a child and the start of another. It doubles with each start since a
# child was last ready, at most _MAX_DOUBLINGS times.
_RESTART_SECONDS = 10.0
_MAX_DOUBLINGS = 6
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


class StepProcesses:
    """The child processes of one pool, at most as many as the pool has threads."""

    def __init__(self, pool: ThreadPool) -> None:
        self._name = pool.name
        self._lock = threading.Lock()  # guards the attributes below
        self._idle: list[StepProcess] = []
        self._all: list[StepProcess] = []
        self._max_processes = pool.num_threads
        self._next_start = 0.0  # time.monotonic() before which no child is started
        self._failures = 0  # number of children started since a child was last ready
        self._owner = os.getpid()
        self._is_closed = False
        self._steps = 0  # number of steps that were sent to children that have ended

    @property
    def steps(self) -> int:
        """The number of steps that were sent to children, successful or not."""
        with self._lock:
            return self._steps + sum(process.steps for process in self._all)

    def take(self) -> StepProcess | None:
        """Return a ready child, reserved until `give_back`, or None if no child is ready.

        If no child is ready and the pool has more threads than children, start another child.
        """
        with self._lock:
            ended = [each for each in self._all if not each.is_alive]
            if ended:
                self._delay_next_start()
                self._steps += sum(each.steps for each in ended)
                self._all = [each for each in self._all if each.is_alive]
                self._idle = [each for each in self._idle if each.is_alive]
            ready = next((each for each in reversed(self._idle) if each.is_ready()), None)
            if ready is not None:
                self._idle.remove(ready)
                self._failures = 0
            elif not self._is_closed and len(self._all) < self._max_processes:
                self._start()
        for each in ended:
            code = each.end(1.0)
            _log.warning("A process of thread pool %s has ended with code %s", self._name, code)
        return ready

    def _start(self) -> None:
        if time.monotonic() < self._next_start:
            return
        self._failures += 1
        try:
            process = StepProcess(self._name)
        except OSError as error:
            _log.warning("Low-priority steps stay in this process: %s", error)
            self._delay_next_start()
            return
        self._all.append(process)
        self._idle.append(process)

    def _delay_next_start(self) -> None:
        doubled = min(self._failures, _MAX_DOUBLINGS)
        self._next_start = time.monotonic() + _RESTART_SECONDS * 2**doubled

    def give_back(self, process: StepProcess) -> None:
        """Make a child that `take` has reserved available again."""
        with self._lock:
            self._idle.append(process)

    @property
    def is_closed(self) -> bool:
        """Whether the pool has shut down."""
        return self._is_closed

    def close(self) -> None:
        """Kill the children.

        Do nothing in a forked copy of this process, because the children are not its own.
        """
        if os.getpid() != self._owner:
            return
        with self._lock:
            self._is_closed = True
            ending, self._all, self._idle = self._all, [], []
        for process in ending:
            process.kill()
        for process in ending:
            process.end()


_by_pool: weakref.WeakKeyDictionary[ThreadPool, StepProcesses] = weakref.WeakKeyDictionary()
_by_pool_lock = threading.Lock()  # guards _by_pool


def step_processes(pool: ThreadPool) -> StepProcesses:
    """Return the child processes of a pool; they are killed when the pool shuts down."""
    with _by_pool_lock:
        found = _by_pool.get(pool)
        if found is None:
            found = _by_pool[pool] = StepProcesses(pool)
            pool.at_shutdown(found.close)
    return found


@atexit.register
def _close_all() -> None:
    with _by_pool_lock:
        found = list(_by_pool.values())
    for processes in found:
        processes.close()


def run_in_process(
    pool: ThreadPool, executor: Executor, step: Step, arguments: Sequence[Any]
) -> list[Any] | None:
    """Run a step in a child of the pool; return None if the step must run in this process.

    Raises the OpError of the step, also of its cancellation, and UnavailableError if the child
    crashes, or the pool shuts down, during the step.
    """
    if step.collector is not None or not _is_worth_sending(executor):
        return None
    portable = executor.portable
    if portable is None:
        return None
    processes = step_processes(pool)
    process = processes.take()
    if process is None:
        return None
    try:
        answer = process.run(portable, step, arguments)
    except ChildEndedError as error:
        step.cancellation.check()
        if processes.is_closed or not process.was_killed():
            raise
        _log.warning("%s. Step %d runs again in the server's process", error.message, step.step_id)
        return None
    finally:
        processes.give_back(process)
    if answer is None:
        return None
    if answer.is_refused:
        executor.mark_not_portable()
        return None
    executor.last_seconds = answer.seconds
    if step.memory is not None:
        for value in answer.values:
            if getattr(value, "nbytes", 0) > MOST_LARGE_BYTES:
                step.memory.hold(value)
    return answer.values


def _is_worth_sending(executor: Executor) -> bool:
    seconds = executor.last_seconds
    if executor.runs < _WARM_UP_RUNS and seconds < _SURELY_SECONDS:
        return False
    return WORTH_SECONDS <= seconds < math.inf
