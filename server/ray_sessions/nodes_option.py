"""The setting `ray.nodes`: which nodes of a cluster take sessions."""

from __future__ import annotations

from runtime.errors import InvalidArgumentError
from runtime.ray_api import SCHEME, Placement, parse_ray_target


def nodes_option(text: str) -> Placement:
    """Return what a node must have; raise InvalidArgumentError if the text is wrong."""
    try:
        placement = parse_ray_target(f"{SCHEME}auto?{text}").placement
    except InvalidArgumentError as error:
        told = error.message.partition(": ")[2] or error.message
        raise InvalidArgumentError(f"ray.nodes is {text!r}: {told}") from None
    if placement.is_isolated:
        raise InvalidArgumentError(
            f"ray.nodes is {text!r}: sessions of a server have no actors of their own (isolation)"
        )
    return placement
