"""The main program of a child process that runs low-priority steps.

Its parent is `sessions/child_process/step_process.py`, which starts it as

    python -m runtime.step_process_main DATA CONTROL INCOMING OUTGOING TENSOR_LIMIT NAME

DATA and CONTROL are file descriptors of sockets, INCOMING and OUTGOING file descriptors of shared
memory areas, or −1 if there is no area; the parent has opened them. TENSOR_LIMIT is the largest
allowed tensor in bytes, NAME the name of the thread pool.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading


def main() -> None:
    """Lower the priority of the process, import what steps need, and serve the parent."""
    data, control, incoming, outgoing, limit, name = sys.argv[1:]
    from runtime.foundation.parent_process import continue_after_parent
    from runtime.foundation.processor_share import LONGEST_SLICE_SECONDS, share_processors
    from runtime.foundation.thread_pool import LOW_PRIORITY_NICE, name_thread

    continue_after_parent()
    # SCHED_IDLE is not used, because a thread that woke on a processor which ran a SCHED_IDLE
    # process waited for the next timer tick. As a result, a third of the steps of a tiny model
    # took over 1.5 ms.
    share_processors(LOW_PRIORITY_NICE, LONGEST_SLICE_SECONDS)
    # A terminal sends these signals to the whole process group. Only the parent ends this process.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)

    from runtime.foundation.intra_op_pool import set_process_width
    from runtime.foundation.kept_memory import keep_freed_memory
    from runtime.framework.allocation import set_tensor_limit
    from runtime.registrations import device_factories, kernel_registry
    from runtime.sessions.child_process.shared_area import SharedArea
    from runtime.sessions.child_process.step_server import StepServer

    name_thread(f"low_{name}")
    set_tensor_limit(int(limit))
    set_process_width(1)
    keep_freed_memory()
    server = StepServer(
        socket.socket(fileno=int(data)),
        device_factories().add_devices,
        kernel_registry(),
        SharedArea(int(incoming)),
        SharedArea(int(outgoing)),
    )
    listening = socket.socket(fileno=int(control))
    threading.Thread(target=server.listen, args=(listening,), daemon=True).start()
    server.serve()


if __name__ == "__main__":
    main()
