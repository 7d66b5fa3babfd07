"""Sessions that tests of the console open beside it, and what they fill them with."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

import protos as pb
from runtime.framework.dtypes import DataType
from tests.integration.server_process import ServerProcess
from tests.node_builder import build_node_def


def open_session(server: ServerProcess, **body: Any) -> str:
    """Open a session; its id."""
    answer = server.client.post("/v1/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["session"])


def sum_graph() -> bytes:
    """A GraphDef with `total`, the sum of the placeholder `left` and the constant `right`."""
    nodes = [
        build_node_def("Placeholder", "left", attrs={"dtype": DataType.FLOAT}),
        build_node_def("Const", "right", attrs={"dtype": DataType.FLOAT, "value": np.float32(40)}),
        build_node_def("AddV2", "total", [("left:0", DataType.FLOAT), ("right:0", DataType.FLOAT)]),
    ]
    return pb.GraphDef(node=nodes).SerializeToString()


def waiting_graph() -> bytes:
    """A GraphDef with a queue and `taken`, which waits for an element that never comes."""
    queue = build_node_def(
        "FIFOQueueV2",
        "mail",
        attrs={"component_types": (DataType.FLOAT,), "capacity": 8, "shapes": ((),)},
    )
    taken = build_node_def(
        "QueueDequeueV2",
        "taken",
        [("mail:0", DataType.RESOURCE)],
        {"component_types": (DataType.FLOAT,)},
    )
    put = build_node_def(
        "QueueEnqueueV2",
        "put",
        [("mail:0", DataType.RESOURCE), [("letter:0", DataType.FLOAT)]],
    )
    letter = build_node_def(
        "Const", "letter", attrs={"dtype": DataType.FLOAT, "value": np.float32(1)}
    )
    return pb.GraphDef(node=[queue, taken, letter, put]).SerializeToString()


def base64_of(content: bytes) -> str:
    """Bytes as `:extend` takes them."""
    return base64.b64encode(content).decode()
