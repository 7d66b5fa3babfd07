"""Summary messages, byte for byte."""

from __future__ import annotations

import ml_dtypes
import numpy as np

import protos as pb
from tests.conformance.case import case, from_producer

NUMBERS = np.array([-3.5, -1e-13, 0.0, 0.0, 1e-5, 1.0, 2.5, 2.6, 1e19, 1e21])
METADATA = pb.SummaryMetadata(
    display_name="shown", plugin_data=pb.SummaryMetadata.PluginData(plugin_name="scalars")
).SerializeToString(deterministic=True)


def summary(*tags: str) -> bytes:
    values = [pb.Summary.Value(tag=tag, simple_value=0.5) for tag in tags]
    return pb.Summary(value=values).SerializeToString(deterministic=True)


CASES = (
    case("ScalarSummary", ["a", "b"], [1.5, -2.0]),
    case("ScalarSummary", "a", np.int64(3)),
    case("ScalarSummary", ["a"], np.float64(0.1)),
    case("ScalarSummary", "a", np.array([2.5], ml_dtypes.bfloat16)),
    case("ScalarSummary", ["a", "b"], [[1.5, -2.0]], message=True),
    case("ScalarSummary", "a", [1.5, -2.0], message=True),
    *(
        case("HistogramSummary", "h", values)
        for values in (
            NUMBERS,
            NUMBERS.astype(np.float32),
            np.array([[1, 2], [-3, 100]], np.int32),
            np.empty(0, np.float32),
            np.float32(2.5),
        )
    ),
    case("HistogramSummary", "in_order", np.sin(np.arange(1, 41))),
    case("HistogramSummary", "h", [np.nan, 1.0], message=True),
    case("HistogramSummary", "h", [np.inf, 1.0], message=True),
    case("HistogramSummary", ["h"], [1.0]),
    case("MergeSummary", [summary("a"), summary("b", "c")]),
    case("MergeSummary", [[summary("a"), summary("b")], summary()]),
    case("MergeSummary", [summary("a"), summary("a")], message=True),
    case("MergeSummary", ["junk"]),
    case("TensorSummaryV2", "t", np.array([[1.0, 2.0]], np.float32), METADATA),
    case("TensorSummaryV2", "t", np.array(["x", "yz"], object), ""),
    case("TensorSummaryV2", "t", 1, b"\xff"),
    case("TensorSummary", np.array([[1, 2]], np.int64)),
    *(
        case("AudioSummaryV2", "s", clips, np.float32(8000), max_outputs=most)
        for clips in (
            np.array([[0.0, 0.5, -0.5, 1.0, -1.0, 0.25]] * 2, np.float32),
            np.array([[[0.1, -0.1], [0.9, 2.0]]], np.float32),
        )
        for most in (1, 3)
    ),
    *(
        from_producer(
            14,
            case(
                "AudioSummary",
                "s",
                np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 3, 2),
                sample_rate=rate,
                max_outputs=2,
            ),
        )
        for rate in (8000.0, 0.0)
    ),
    case("AudioSummaryV2", "s", np.zeros(4, np.float32), np.float32(8000)),
    *(
        case("AudioSummaryV2", "s", np.zeros(shape, np.float32), np.float32(8000), message=True)
        for shape in ((2, 0), (0, 3), (2, 0, 2), (2, 3, 0), (0, 3, 0))
    ),
    *(
        case("AudioSummaryV2", "s", np.zeros((1, 2), np.float32), np.float32(rate), message=True)
        for rate in (0.2, 1.5, 44100.6, 3e9, 4.3e9, np.inf, 0)
    ),
    case("ScalarSummary", np.array([b"\xff", b"a"], object), [1.5, -2.0]),
    case("HistogramSummary", b"\xff\xfe", [1.0]),
    case("HistogramSummary", "h", [-0.0, 0.0, 1.0]),
    case("HistogramSummary", "h", [-1.0, 0.0, -0.0]),
    case("HistogramSummary", "negative_zero", [-0.0]),
    case("AudioSummaryV2", b"\xff", np.zeros((1, 2), np.float32), np.float32(8000)),
    case("TensorSummaryV2", b"\xff", 1, ""),
    case("TensorSummaryV2", "", 1, ""),
    case("MergeSummary", [np.array([b"\n\x03\n\x01\xff"], object)]),
)
