"""The settings `ray.address` and `ray.nodes`: a cluster, and which of its nodes take sessions."""

from __future__ import annotations

from runtime.errors import InvalidArgumentError
from runtime.ray_api import SCHEME, Placement, RayTarget, parse_ray_target


def cluster_of(address: str) -> RayTarget:
    """Return the target of a cluster; raise InvalidArgumentError if the address is wrong."""
    plain, question, options = address.partition("?")
    if question:
        raise InvalidArgumentError(
            f"ray.address is {address!r}: expected auto or HOST:PORT without options; which nodes "
            f"take sessions is in ray.nodes (address: {plain}, nodes: {options})"
        )
    return parse_ray_target(f"{SCHEME}{address}")


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
