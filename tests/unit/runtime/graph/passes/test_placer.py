"""The log of where nodes are placed."""

from __future__ import annotations

import logging

import pytest

import protos as pb
from runtime.graph.passes.placer import log_device_mapping
from tests.unit.runtime.graph.passes.placed_graphs import PREFIX, ping_pong
from tests.unit.runtime.sessions.graphs import direct_session


def test_placement_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    graph = ping_pong([1, 0])
    graph.node[-1].attr["_class"].list.s.append(b"loc:@n0")
    graph.node[-1].device = ""
    config = pb.ConfigProto(log_device_placement=True, device_count={"CPU": 2})
    with caplog.at_level(logging.INFO, logger="runtime.graph.passes.placer"):
        direct_session(graph, config)
    assert caplog.messages == [
        f"Device mapping:\n{PREFIX}0 -> CPU\n{PREFIX}1 -> CPU",
        f"x: (Placeholder): {PREFIX}0",
        f"n0: (Exp): {PREFIX}1",
        f"n1: (Neg): {PREFIX}1",
    ]


def test_no_device_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="runtime.graph.passes.placer"):
        log_device_mapping([])
    assert caplog.messages == ["Device mapping: no known devices."]
