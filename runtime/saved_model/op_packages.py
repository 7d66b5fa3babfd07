"""Names the packages of ops that this runtime does not have.

TensorFlow Serving's binary links these packages, or exporters write their ops. `runstep show`
prints the package of each missing op.

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

# The ops that release 2.21 of `tensorflow_text` registers, except ops whose names start with
# `TFText>`: `_PREFIXES` has this prefix.
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
# prefix of op names → package. The names of all ops of Decision Forests start with its prefix.
_PREFIXES = {
    "TFText>": TENSORFLOW_TEXT,
    "SimpleML": DECISION_FORESTS,
    "XlaCallModule": JAX_EXPORT,
}


def explain_op(op: str) -> str | None:
    """Return a text that names the package of the missing op `op`; None if it is not known."""
    if op in _TEXT_OPS:
        return TENSORFLOW_TEXT
    return next((text for prefix, text in _PREFIXES.items() if op.startswith(prefix)), None)
