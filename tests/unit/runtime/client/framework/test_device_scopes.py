"""Device scopes: how nested ones are merged."""

from __future__ import annotations

import pytest

from runtime.client import (
    constant,
    device,
    no_op,
)


def test_devices_merge_from_outside_in(graph):
    with device("/cpu:0"):
        assert constant(1).device == "/device:CPU:0"
        with device("/job:worker"):
            assert constant(1).device == "/job:worker/device:CPU:0"
        with device("/GPU:1"):
            assert constant(1).device == "/device:GPU:1"
        with device(None):
            assert constant(1).device == ""
    with device(lambda operation: "/cpu:3" if operation.type == "Const" else None):
        assert constant(1).device == "/cpu:3"
        assert no_op().device == ""
    with device("/job:worker"), device(lambda _: "/gpu:1"):
        assert constant(1).device == "/job:worker/device:GPU:1"
    with pytest.raises(ValueError, match="while parsing the device spec: '/foo'"), device("/foo"):
        pass
