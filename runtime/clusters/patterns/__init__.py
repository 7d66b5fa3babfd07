"""Recognition of groups of operations that an engine has as one, or need not run at all."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.clusters.emission import Emission
from runtime.clusters.patterns.attention import recognize_attention
from runtime.clusters.patterns.convolution_columns import take_channels_as_columns
from runtime.clusters.patterns.convolution_pads import take_in_pads
from runtime.clusters.patterns.convolution_scales import take_in_scales
from runtime.clusters.patterns.dense import recognize_dense
from runtime.clusters.patterns.gelu import recognize_gelu
from runtime.clusters.patterns.layer_normalization import recognize_layer_normalization
from runtime.clusters.patterns.moves import drop_moves
from runtime.clusters.patterns.pattern import Pattern, apply_pattern
from runtime.clusters.values import Value

# In this order: each finds what those before it leave.
PATTERNS: tuple[Pattern, ...] = (
    recognize_layer_normalization,
    recognize_gelu,
    recognize_attention,
    recognize_dense,
    drop_moves,
    take_in_scales,
    take_in_pads,
    take_channels_as_columns,
)


def recognize(
    emission: Emission, outputs: Sequence[Value], patterns: Sequence[Pattern] = PATTERNS
) -> list[Value]:
    """Replace all that the patterns match; return the values of `outputs` after it."""
    for pattern in patterns:
        outputs = apply_pattern(emission, outputs, pattern)
    return list(outputs)
