"""The op of a cluster's node; whoever only has to know it imports no emitters."""

from __future__ import annotations

CLUSTER_OP = "_Cluster"
