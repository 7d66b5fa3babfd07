"""SessionOptions: the target, configuration and hooks of a new session.

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
    Runstep server. `kernels` take precedence over the built-in ones (TF: customKernelCreator).
    `files` decides which files steps may read and write. None allows all, which is for programs
    that run their own graphs; a server always passes a gate. `resources` is a manager that several
    sessions share; without it the session has its own. A graph with more than `max_graph_nodes`
    nodes is a ResourceExhaustedError.
    """

    target: str = ""
    config: pb.ConfigProto = dataclasses.field(default_factory=pb.ConfigProto)
    kernels: Sequence[KernelDef] = ()
    files: FileGate | None = None
    resources: ResourceManager | None = None
    max_graph_nodes: int = 1_000_000
