"""Node: what is known of a node of a Ray cluster, and which node a session goes to.

A node without CPUs takes sessions only if it is asked for by name: clusters start their head with
`--num-cpus=0` in order that nothing runs there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from runtime.foundation.errors import FailedPreconditionError, NotFoundError, UnavailableError
from runtime.sessions.ray_cluster.ray_target import Placement

_NODE_LABEL = "ray.io/node-id"
_SHOWN = 8  # nodes that an error lists


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """A node that is alive. `resources` are its totals by Ray's names.

    `socket` is the Unix socket of its raylet, and `port` the port; what is not known is left out.
    """

    id: str
    address: str
    name: str
    resources: Mapping[str, float]
    labels: Mapping[str, str]
    socket: str = ""
    port: int = 0

    def has(self, placement: Placement) -> bool:
        """Return whether a session may be placed here, now or when the node is less busy."""
        if placement.node:
            if placement.node not in (self.id, self.address, self.name):
                return False
        elif not self.resources.get("CPU"):
            return False
        return all(
            self.resources.get(name, 0) >= amount for name, amount in placement.amounts.items()
        ) and all(self.labels.get(key) == value for key, value in placement.labels.items())


def feasible_nodes(placement: Placement, nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that have what is asked for.

    Raises UnavailableError if no node is alive, NotFoundError if no node has the id or address, and
    FailedPreconditionError if no node has the resources and labels.
    """
    if not nodes:
        raise UnavailableError("No node of the Ray cluster is alive")
    found = [node for node in nodes if node.has(placement)]
    if found:
        return found
    if placement.node and not any(
        placement.node in (node.id, node.address, node.name) for node in nodes
    ):
        addresses = ", ".join(sorted({f"{node.address} ({node.id})" for node in nodes})[:_SHOWN])
        raise NotFoundError(
            f"The Ray cluster has no node {placement.node!r}; its nodes are {addresses}"
        )
    raise FailedPreconditionError(
        f"No node of the Ray cluster has {_asked(placement)}; the nodes have {_shown(nodes)}"
    )


def choose_node(
    placement: Placement, nodes: Sequence[Node], counts: Mapping[str, int], own: str = ""
) -> Node:
    """Return the feasible node with the fewest sessions for each of its CPUs.

    `counts` are sessions by node id. Of equal nodes the one whose id is `own` comes first, because
    tensors reach it through shared memory. Raises what `feasible_nodes` raises.
    """
    return min(
        feasible_nodes(placement, nodes),
        key=lambda node: (
            counts.get(node.id, 0) / max(node.resources.get("CPU", 0), 1),
            node.id != own,
            node.id,
        ),
    )


def _asked(placement: Placement) -> str:
    asked = [_amount(name, amount) for name, amount in placement.amounts.items()]
    asked += [f"label {key}={value}" for key, value in placement.labels.items()]
    if placement.node:
        asked.append(f"the address {placement.node}")
    return " and ".join(asked) or "a CPU"


def _shown(nodes: Sequence[Node]) -> str:
    shown = []
    for node in nodes[:_SHOWN]:
        amounts = [
            _amount(name, amount)
            for name, amount in sorted(node.resources.items())
            if not name.startswith("node:") and name != "object_store_memory"
        ]
        labels = [f"{key}={value}" for key, value in node.labels.items() if key != _NODE_LABEL]
        shown.append(f"{node.address}: {', '.join([*amounts, *labels])}")
    if len(nodes) > _SHOWN:
        shown.append(f"and {len(nodes) - _SHOWN} more")
    return "; ".join(shown)


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        return f"{amount / 2**30:.1f} GiB of memory"
    return f"{amount:g} {name}"
