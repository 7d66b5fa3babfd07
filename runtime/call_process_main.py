"""The main program of a child process that runs the functions of one module.

Its parent is `sessions/child_process/call_process.py`, which starts it as

    python -m runtime.call_process_main DATA INCOMING OUTGOING TENSOR_LIMIT SHARE NAME MODULE

DATA is the file descriptor of a socket, INCOMING and OUTGOING those of shared memory areas, or −1
if there is no area; the parent has opened them. TENSOR_LIMIT is the largest allowed tensor in
bytes, SHARE the priority of the process, `low` or `normal`, NAME its name, MODULE
the module with the functions (`CALLS`).
"""

from __future__ import annotations

import importlib
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any


def main() -> None:
    """Set the priority of the process, import the module, and serve the parent."""
    data, incoming, outgoing, limit, share, name, module = sys.argv[1:]
    from runtime.foundation.parent_process import continue_after_parent
    from runtime.foundation.processor_share import LONGEST_SLICE_SECONDS, share_processors
    from runtime.foundation.thread_pool import LOW_PRIORITY_NICE, name_thread

    continue_after_parent()
    if share == "low":
        share_processors(LOW_PRIORITY_NICE, LONGEST_SLICE_SECONDS)  # as in step_process_main
    # A terminal sends these signals to the whole process group. Only the parent ends this process.
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)

    from runtime.foundation.kept_memory import keep_freed_memory
    from runtime.foundation.message_channel import MessageChannel
    from runtime.framework.allocation import set_tensor_limit
    from runtime.sessions.child_process.shared_area import SharedArea

    name_thread(f"{share}_{name}")
    set_tensor_limit(int(limit))
    keep_freed_memory()
    calls = importlib.import_module(module).CALLS
    channel = MessageChannel(socket.socket(fileno=int(data)))
    areas = SharedArea(int(incoming)), SharedArea(int(outgoing))
    try:
        channel.send({"ready": True})
        while True:
            _answer(channel, calls, *areas)
    except ConnectionError:
        return


def _answer(channel: Any, calls: Mapping[str, Any], incoming: Any, outgoing: Any) -> None:
    """Run one call; a call that raises is answered without a reason, because it is repeated."""
    from runtime.sessions.child_process.tensor_frames import frames, receive_tensors

    header = channel.receive()
    arrays = receive_tensors(channel, header["arrays"], incoming)
    try:
        data, values = calls[header["call"]](header["data"], arrays)
    except Exception as error:
        channel.send({"raised": type(error).__name__})
        return
    outgoing.begin()
    described, buffers = frames(values, outgoing)
    channel.send({"data": data, "arrays": described}, buffers)


if __name__ == "__main__":
    main()
