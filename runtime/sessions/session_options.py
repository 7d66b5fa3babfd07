"""SessionOptions: what a session is made with.

TF: tensorflow/core/public/session_options.h
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import protos as pb
from runtime.framework.op_kernel import FileGate, KernelDef
from runtime.framework.resource_manager import ResourceManager


@dataclasses.dataclass(slots=True)
class SessionOptions:
    """Target, configuration and hooks of a new session.

    `target`: "" is the direct runtime, `grpc://host:port` a master service, `http://host:port` a
    Runstep server. `kernels` come before the built-in ones (TensorFlow's customKernelCreator).
    `files` decides which files steps may touch: None allows all, for programs that run graphs of
    their own; a server always passes a gate. `resources` shares one manager between sessions.
    `max_graph_nodes` bounds the graph (ResourceExhaustedError).
    """

    target: str = ""
    config: pb.ConfigProto = dataclasses.field(default_factory=pb.ConfigProto)
    kernels: Sequence[KernelDef] = ()
    files: FileGate | None = None
    resources: ResourceManager | None = None
    max_graph_nodes: int = 1_000_000
