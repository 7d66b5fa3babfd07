"""The actor that runs this."""

from __future__ import annotations

import ray


def exit_actor() -> None:
    """End the actor, from any task of its event loop; its name becomes free."""
    # ray.actor.exit_actor ends the call that uses it, and only a call: here is none.
    ray.kill(ray.get_runtime_context().current_actor)


def own_node_id() -> str:
    """Return the id of the node on which the actor runs."""
    node_id: str = ray.get_runtime_context().get_node_id()
    return node_id
