"""Clusters: groups of expensive nodes of a step's graph, which an engine computes as one.

The way of a cluster: `partition` chooses nodes, `emission` writes them as operations of a model,
`patterns` recognises larger operations among these, `loops` does so for whole loops, `model_proto`
serialises the model, `backend` compiles and runs it, and `cluster` decides at each run whether the
compiled form holds. The numpy kernels are the reference; they run whatever an engine doesn't take.
"""

from __future__ import annotations

import os

# ONNX Runtime collects telemetry in the user's cache, and leaves a file in TMPDIR, from its import
# on: `disable_telemetry_events` comes too late for that.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
