"""The child's side of low-priority steps, in this process."""

import socket
import threading

import numpy as np

import protos as pb
from runtime.foundation.message_channel import MessageChannel
from runtime.registrations import device_factories, kernel_registry
from runtime.sessions.child_process import step_server
from runtime.sessions.child_process.shared_area import SharedArea
from runtime.sessions.child_process.step_server import StepServer
from runtime.sessions.child_process.tensor_frames import frames, receive_tensors
from tests.conformance.case import Graph

NODES = 100


def chain() -> pb.GraphDef:
    graph = Graph()
    value = graph.placeholder("float32", "x")
    for index in range(NODES):
        value = graph.add("AddV2", value, value, name=f"n{index}")[0]
    return graph.graph_def


def test_a_step_lets_others_run_at_its_beginning_and_every_few_nodes(monkeypatch):
    events = []
    monkeypatch.setattr(step_server, "_let_others_run", lambda: events.append("gave way"))
    ours, theirs = socket.socketpair()
    none = SharedArea(-1)
    server = StepServer(theirs, device_factories().add_devices, kernel_registry(), none, none)
    serving = threading.Thread(target=server.serve)
    serving.start()
    channel = MessageChannel(ours)
    assert channel.receive() == {"ready": True}
    graph_def = chain()
    nodes = [node.SerializeToString() for node in graph_def.node]
    header = {"feeds": ["x:0"], "fetches": [f"n{NODES - 1}:0"], "targets": [], "variables": []}
    channel.send({"graph": 1, "nodes": len(nodes), **header}, [b"", b"", b"", *nodes])

    def run() -> float:
        descriptions, buffers = frames([np.float32(1)])
        channel.send({"run": 1, "step": 7, "arguments": descriptions, "variables": []}, buffers)
        answer = channel.receive()
        (value,) = receive_tensors(channel, answer["values"])
        return float(value)

    first = [run() for _ in range(3)]  # interpreted, then written as Python
    monkeypatch.setattr(step_server, "_GIVE_WAY_SECONDS", 0.0)
    events.clear()
    assert [*first, run()] == [2.0**NODES] * 4
    assert len(events) >= NODES // 16  # and not one a node
    assert len(events) < NODES
    channel.close()
    serving.join(30)
    assert not serving.is_alive()
    channel.release()
    theirs.close()
