"""Ops of packages that TensorFlow Serving's binary links, or that exporters write, and that are
missing here: `runstep show` names the package of each.

TF: tensorflow_serving/model_servers/BUILD (SUPPORTED_TENSORFLOW_OPS)
"""

from __future__ import annotations

TENSORFLOW_TEXT = (
    "an op of TensorFlow Text, which TensorFlow Serving's binary links and Runstep does not have"
)
DECISION_FORESTS = (
    "an op of TensorFlow Decision Forests, which TensorFlow Serving's binary links and Runstep "
    "does not have"
)
JAX_EXPORT = "a model exported from JAX: Runstep does not run StableHLO modules"

# The ops that `import tensorflow_text` registers, release 2.21. Names after `TFText>` are below.
_TEXT_OPS = frozenset(
    (
        "CaseFoldUTF8", "ConstrainedSequence", "FastBertNormalize",
        "FastWordpieceTokenizeWithOffsets", "FindSourceOffsets", "MaxSpanningTree",
        "NormalizeUTF8", "NormalizeUTF8WithOffsetsMap", "PhraseTokenize",
        "RegexSplitWithOffsets", "RougeL", "SentenceFragments", "SentenceFragmentsV2",
        "SentencepieceDetokenizeOp", "SentencepieceIdToStringOp", "SentencepieceOp",
        "SentencepieceStringToIdOp", "SentencepieceTokenizeOp",
        "SentencepieceTokenizeWithOffsetsOp", "SentencepieceVocabSizeOp",
        "SplitMergeTokenizeWithOffsets", "TokenizerFromLogits",
        "UnicodeScriptTokenizeWithOffsets", "WhitespaceTokenizeWithOffsets",
        "WordpieceTokenizeWithOffsets",
    )
)  # fmt: skip
# Op name prefix → package. Decision Forests prefixes all of its ops.
_PREFIXES = {
    "TFText>": TENSORFLOW_TEXT,
    "SimpleML": DECISION_FORESTS,
    "XlaCallModule": JAX_EXPORT,
}


def explain_op(op: str) -> str | None:
    """Say which package a missing op belongs to; None for an op of no known package."""
    if op in _TEXT_OPS:
        return TENSORFLOW_TEXT
    return next((text for prefix, text in _PREFIXES.items() if op.startswith(prefix)), None)
