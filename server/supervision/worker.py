"""One of several processes that serve as one server: `python -m server.supervision.worker FD`.

The supervisor starts it, and passes it what it must know in a file in memory. When the supervisor
ends, however that happens, the process drains as after SIGTERM; if it is stopped, it goes on first.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from pathlib import Path

from server.processes.host_table import HostTable
from server.processes.worker_task import WorkerTask
from server.starting.early_signals import SIGNALS, end_at_signals

_log = logging.getLogger(__name__)

# Of the background process until it is ready: beside busy processes one of nice 19 starts late.
_NICE_AT_START = 10


def run(descriptor: int) -> int:
    """Serve until a signal, and return the exit code."""
    task = WorkerTask.from_memory(descriptor)
    if task.is_background:
        os.nice(_NICE_AT_START)
    # Imported after the signals have a handler.
    from runtime.api import continue_after_parent, leave_one_processor, run_in_background
    from runtime.errors import OpError
    from server.background.background_settings import low_priority_turns
    from server.process.serve import serve
    from server.process.shared_ports import SharedPorts
    from server.processes.worker_host import WorkerHost
    from server.settings import Settings
    from server.start_log import Start
    from server.supervision.divided_settings import divided_settings

    continue_after_parent()
    whole = Settings(**task.settings)
    host = WorkerHost(HostTable(task.table, task.count), task.place, Path(task.folder))
    if task.is_background:
        settings = whole
        # Threads inherit both the length of time slices and the processors.
        run_in_background(_NICE_AT_START)
        leave_one_processor()
        host.share_low_priority(task.turns or {})
    else:
        settings = divided_settings(whole, task.slot, task.count)
        host.share_low_priority(low_priority_turns(whole, task.count))
    host.share_priorities()
    if task.count > 1:
        host.share_weights()
    listeners = [socket.socket(fileno=each) for each in task.listeners]
    is_first = task.slot == 0 and task.generation == 0
    start = Start(task.sources, task.notes) if is_first else None
    try:
        return serve(settings, start, SharedPorts(host, listeners, task.supervisor, task.has_rpc))
    except OpError as error:
        _log.error("%s: %s", error.code.name, error.message)
        return 1


if __name__ == "__main__":
    end_at_signals()
    # The supervisor waits for its signals, which are blocked in it and in what it starts.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, signal.SIGCHLD})
    code = run(int(sys.argv[1]))
    from server.process_end import end_process

    end_process(code)
