"""CallProcess: a child process that runs the functions of one module.

A thread of this process sends the arguments and waits for the result without holding the
interpreter lock. If the child has low priority, the thread waits at the priority gate before each
part of this work. Arrays go through shared memory (`shared_area.py`), everything else through a
socket pair.

Guarantees: thread-safe; the child runs one call at a time; it is started at the first call and ends
when `close` is called and when this process ends in any way. A child that has ended is replaced.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from runtime.foundation.errors import UnavailableError
from runtime.foundation.message_channel import MessageChannel
from runtime.foundation.priority_gate import gate
from runtime.framework.allocation import tensor_limit
from runtime.sessions.child_process.shared_area import SharedArea
from runtime.sessions.child_process.tensor_frames import copied_out, frames, receive_tensors

CALL_MODULE = "runtime.call_process_main"
# How a child ends that somebody else ends: by an operator or the system. Other signals are crashes.
ENDED_FROM_OUTSIDE = frozenset((-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT, -signal.SIGHUP))
# The pause between the end of a child and the start of another. It doubles with each start since a
# child was last ready, at most _MAX_DOUBLINGS times.
_RESTART_SECONDS = 10.0
_MAX_DOUBLINGS = 6
_KILL_WAIT_SECONDS = 5.0  # the longest wait for a killed child
_CODE_ROOT = str(pathlib.Path(__file__).parents[3])


class CallResult(NamedTuple):
    """What a function of the module returns: JSON data and arrays."""

    data: Any
    arrays: list[np.ndarray]


# Takes JSON data and read-only arrays, which are valid during the call. Must be in the mapping
# `CALLS` of the module, under the name of the call.
CallFunction: TypeAlias = Callable[[Any, list[np.ndarray]], CallResult]


def child_environment() -> dict[str, str]:
    """Return a child's environment: this process's import path and single-threaded BLAS."""
    path = [*filter(None, sys.path), _CODE_ROOT]
    threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(dict.fromkeys(path))}


class CallProcess:
    """The child process of one module, whose name must not come from a client."""

    def __init__(self, name: str, module: str, *, low_priority: bool = True) -> None:
        self._name, self._module, self._is_low_priority = name, module, low_priority
        self._lock = threading.Lock()  # held during a call; guards the attributes below
        self._child: _Child | None = None
        self._next_start = 0.0  # time.monotonic() before which no child is started
        self._failures = 0  # number of children started since a child was last ready
        self._is_closed = False

    @property
    def process_id(self) -> int | None:
        """The process id of the child that is starting or ready; None if there is none."""
        child = self._child
        return None if child is None else child.process.pid

    def call(self, name: str, data: Any, arrays: Sequence[np.ndarray]) -> CallResult | None:
        """Run a function in the child and wait for its result.

        Return None if the caller must do the work itself: because no child is ready, the function
        raised an exception, or somebody has killed the child. Raises UnavailableError if the child
        has crashed, because the work would crash this process too.
        """
        with self._lock:
            child = self._ready()
            if child is None:
                return None
            if self._is_low_priority:
                gate.pass_through()
            try:
                return child.call(name, data, arrays)
            except OSError:  # includes ConnectionError
                code = self._end()
                if code is None or code in ENDED_FROM_OUTSIDE:
                    return None
                raise UnavailableError(
                    f"The process that read or wrote this request has ended with code {code}"
                ) from None
            except BaseException:  # a message may have been sent or received in part
                self._end()
                raise

    def _ready(self) -> _Child | None:
        """Return the child if it is ready; start one if there is none."""
        if self._child is None and not self._is_closed and time.monotonic() >= self._next_start:
            self._failures += 1
            self._delay_next_start()
            with contextlib.suppress(OSError):
                self._child = _Child(self._name, self._module, self._is_low_priority)
                weakref.finalize(self, self._child.kill)
        if self._child is None:
            return None
        try:
            is_ready = self._child.is_ready()
        except OSError:
            self._end()
            return None
        if is_ready:
            self._failures = 0
        return self._child if is_ready else None

    def _delay_next_start(self) -> None:
        doubled = min(self._failures, _MAX_DOUBLINGS)
        self._next_start = time.monotonic() + _RESTART_SECONDS * 2**doubled

    def _end(self) -> int | None:
        child, self._child = self._child, None
        self._delay_next_start()
        return None if child is None or self._is_closed else child.end()

    def close(self) -> None:
        """Kill the child; a call in progress returns None."""
        self._is_closed = True
        child = self._child
        if child is not None:
            child.kill()
        with self._lock:
            if child is not None:
                child.end()
            self._child = None


class _Child:
    """One child process and its connection."""

    def __init__(self, name: str, module: str, is_low_priority: bool) -> None:
        self._is_low_priority = is_low_priority
        if not sys.executable:  # the interpreter is embedded in another program
            raise OSError("the interpreter has no program of its own")
        with contextlib.ExitStack() as opened:
            self._outgoing, self._incoming = SharedArea.create(), SharedArea.create()
            opened.callback(self._outgoing.close)
            opened.callback(self._incoming.close)
            ours, theirs = map(opened.enter_context, socket.socketpair())
            fds = [theirs.fileno(), self._outgoing.fd, self._incoming.fd]
            share = "low" if is_low_priority else "normal"
            arguments = [*map(str, fds), str(tensor_limit()), share, name, module]
            self.process = subprocess.Popen(
                # With -P, no module is imported from the current folder.
                [sys.executable, "-P", "-m", CALL_MODULE, *arguments],
                pass_fds=[fd for fd in fds if fd >= 0],
                stdin=subprocess.DEVNULL,
                env=child_environment(),
            )
            opened.pop_all()
        theirs.close()
        self._socket, self._channel = ours, MessageChannel(ours)
        self._is_ready = self._has_ended = False

    def is_ready(self) -> bool:
        """Return whether the child has reported that it is ready; raise OSError if it has ended."""
        if not self._is_ready:
            poll = select.poll()  # not select.select, which refuses descriptors from 1024 on
            poll.register(self._socket, select.POLLIN)
            if poll.poll(0):
                self._channel.receive()
                self._is_ready = True
        return self._is_ready

    def call(self, name: str, data: Any, arrays: Sequence[np.ndarray]) -> CallResult | None:
        self._outgoing.begin()
        described, buffers = frames(arrays, self._outgoing)
        self._channel.send({"call": name, "data": data, "arrays": described}, buffers)
        answer = self._channel.receive()
        if self._is_low_priority:
            gate.pass_through()
        values = copied_out(
            receive_tensors(self._channel, answer.get("arrays", ()), self._incoming)
        )
        return None if "raised" in answer else CallResult(answer["data"], values)

    def kill(self) -> None:
        """Close the connection and kill the child."""
        self._channel.close()
        self.process.kill()

    def end(self) -> int | None:
        """Wait for the child, which has closed its connection or been killed; free its resources.

        Returns its exit code, or None if it is still running.
        """
        if self._has_ended:
            return self.process.returncode
        self._has_ended = True
        self._channel.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_KILL_WAIT_SECONDS)
        if self.process.returncode is None:
            self.process.kill()
        self._channel.release()
        self._outgoing.close()
        self._incoming.close()
        return self.process.returncode
