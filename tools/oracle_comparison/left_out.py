"""Ops that are not compared on random cases, and the reasons, which docs/ops.md shows."""

from __future__ import annotations

import fnmatch

# (reason shown in docs/ops.md, patterns of op names)
REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "files",
        (
            "ReadFile", "WriteFile", "*MatchingFiles*", "Save*", "Restore*", "MergeV2Checkpoints",
            "GenerateVocabRemapping", "LoadAndRemapMatrix", "LoadDataset", "Snapshot?*",
            "TextLine*", "FixedLengthRecord*", "TFRecord*", "WholeFileReader*", "*ToTFRecord",
            "InitializeTableFromTextFile*", "RecordInput", "*SqlDataset", "Create*Writer",
            "*SummaryWriter", "Write*Summary", "ImportEvent", "*CSVDataset*", "ImmutableConst",
        ),
    ),
    ("a cache, which a file may hold", ("CacheDataset*", "*MemoryCache", "GetElementAtIndex")),
    ("the clock", ("Timestamp",)),
    ("a kernel of oneDNN, which is off", ("QuantizedConcatV2",)),
    ("every case has one", ("Placeholder", "Const", "NoOp")),
)  # fmt: skip


def reason_left_out(op: str) -> str:
    """Return why the op is not compared; "" if it is."""
    for reason, patterns in REASONS:
        if any(fnmatch.fnmatchcase(op, pattern) for pattern in patterns):
            return reason
    return ""
