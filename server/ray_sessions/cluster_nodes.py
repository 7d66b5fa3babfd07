"""The nodes of the cluster as the directory looks at them: Ray notices late that one is dead."""

from __future__ import annotations

import asyncio

import ray

from runtime.ray_api import Node, alive_nodes, says_closed

LOOK_SECONDS = 1.0
_HEAD = "node:__internal_head__"  # a resource that the head alone has


class ClusterNodes:
    """The nodes, and which of them do not answer although Ray takes them for alive.

    Guarantees: used from one event loop.
    """

    def __init__(self) -> None:
        self._silent: set[str] = set()  # ids

    async def usable(self) -> list[Node]:
        """Return the nodes on which a host may be started."""
        return [
            node for node in await asyncio.to_thread(alive_nodes) if node.id not in self._silent
        ]

    async def answers(self, node: Node) -> bool:
        """Return whether a node's port opens; if not, it is not usable until it does."""
        if await _is_open(node):
            self._silent.discard(node.id)
            return True
        self._silent.add(node.id)
        return False

    async def look(self) -> dict[str, Node]:
        """Return the nodes that Ray takes for alive, by id; look at the silent ones again."""
        alive = {node.id: node for node in await asyncio.to_thread(alive_nodes)}
        self._silent &= alive.keys()
        await asyncio.gather(*(self.answers(alive[node_id]) for node_id in self._silent))
        return alive


def own_node() -> Node | None:
    """Return the node that this program belongs to, or None if the cluster does not know it."""
    own = ray.get_runtime_context().get_node_id()
    return next((node for node in alive_nodes() if node.id == own), None)


def on_head() -> dict[str, float]:
    """Return the resources of an actor that is to be on the head, if Ray says which node it is.

    Without the head there is no cluster. An actor on another node that ends is away until Ray
    declares the node dead, which takes 15 s. (Affinity to the head's node, if soft, puts only the
    first of several actors there; if hard, it never finds a head that takes the place of another.)
    """
    is_told = any(_HEAD in told["Resources"] for told in ray.nodes() if told["Alive"])
    return {_HEAD: 0.001} if is_told else {}


async def _is_open(node: Node) -> bool:
    try:
        async with asyncio.timeout(LOOK_SECONDS):
            _, writer = await asyncio.open_connection(node.address, node.port)
    except OSError as error:
        return not says_closed(error)
    writer.close()
    return True
