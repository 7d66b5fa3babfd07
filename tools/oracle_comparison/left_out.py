"""Ops that random cases do not ask, and why; docs/ops.md shows the reason."""

from __future__ import annotations

import fnmatch

# (what docs/ops.md says, patterns of op names)
REASONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "files",
        (
            "ReadFile", "WriteFile", "*MatchingFiles*", "Save*", "Restore*", "MergeV2Checkpoints",
            "GenerateVocabRemapping", "LoadAndRemapMatrix", "LoadDataset", "Snapshot?*",
            "TextLine*", "FixedLengthRecord*", "TFRecord*", "WholeFileReader*", "*ToTFRecord",
            "InitializeTableFromTextFile*", "RecordInput", "*SqlDataset", "Create*Writer",
            "*SummaryWriter", "Write*Summary", "ImportEvent",
        ),
    ),
    ("a cache, which a file may hold", ("CacheDataset*", "*MemoryCache", "GetElementAtIndex")),
    ("the clock", ("Timestamp",)),
    ("every case has one", ("Placeholder", "Const", "NoOp")),
)  # fmt: skip


def reason_left_out(op: str) -> str:
    """Empty when the op is asked."""
    for reason, patterns in REASONS:
        if any(fnmatch.fnmatchcase(op, pattern) for pattern in patterns):
            return reason
    return ""
