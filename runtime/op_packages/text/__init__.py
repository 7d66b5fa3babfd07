"""The ops of TF Text. TF: tensorflow_text 2.21 (tensorflow_text/core/ops)"""

from runtime.framework.op_packages import OpPackage, read_op_defs

# module of this folder → the ops whose kernels its table KERNELS holds
_MODULES: dict[str, tuple[str, ...]] = {
    "wordpieces.fast_wordpiece": (
        "FastWordpieceTokenizeWithOffsets", "TFText>FastWordpieceDetokenize",
    ),
    "fast_sentencepieces": (
        "TFText>FastSentencepieceTokenize", "TFText>FastSentencepieceDetokenize",
    ),
    "phrases": ("PhraseTokenize", "TFText>PhraseDetokenize"),
    "rouge": ("RougeL",),
    "round_robin": ("TFText>RoundRobinTrim", "TFText>RoundRobinGenerateMasks"),
    "sentencepieces": (
        "SentencepieceDetokenizeOp", "SentencepieceIdToStringOp", "SentencepieceOp",
        "SentencepieceStringToIdOp", "SentencepieceTokenizeOp",
        "SentencepieceTokenizeWithOffsetsOp", "SentencepieceVocabSizeOp",
    ),
    "split_merge": ("SplitMergeTokenizeWithOffsets", "TokenizerFromLogits"),
    "wordpieces.wordpiece": ("WordpieceTokenizeWithOffsets",),
    "bert_normalizer": ("FastBertNormalize",),
    "boise_tags": ("TFText>BoiseTagsToOffsets", "TFText>OffsetsToBoiseTags"),
    "byte_splits": (
        "TFText>ByteSplitWithOffsets", "TFText>ByteSplitByOffsets", "TFText>Utf8Binarize",
    ),
    "code_point_tokens": (
        "UnicodeScriptTokenizeWithOffsets", "WhitespaceTokenizeWithOffsets",
    ),
    "constrained_sequence": ("ConstrainedSequence",),
    "ngrams": ("TFText>NgramsStringJoin",),
    "normalization": (
        "CaseFoldUTF8", "FindSourceOffsets", "NormalizeUTF8", "NormalizeUTF8WithOffsetsMap",
    ),
    "spanning_trees": ("MaxSpanningTree",),
    "regex_split": ("RegexSplitWithOffsets",),
    "sentence_fragments": ("SentenceFragments",),
    "sentence_fragments_v2": ("SentenceFragmentsV2",),
    "whitespace_tokens": ("TFText>WhitespaceTokenizeWithOffsetsV2",),
}  # fmt: skip

PACKAGE = OpPackage(
    kernel_modules={op: f"{__name__}.{module}" for module, ops in _MODULES.items() for op in ops},
    op_defs=lambda: read_op_defs(__name__),
    install="runstep[text]",
)
