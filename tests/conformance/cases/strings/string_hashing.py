"""Hash buckets: strings of every length that the three hash functions treat differently."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

TEXTS = [bytes((7 * length + 31 * i) % 256 for i in range(length)) for length in range(140)]
EMPTY = np.empty((0, 2), object)
BUCKETS = [1, 10, 2**63 - 1]

CASES = (
    *(
        case(op, value, num_buckets=buckets)
        for op in ("StringToHashBucket", "StringToHashBucketFast")
        for buckets in BUCKETS
        for value in (TEXTS, "scalar", EMPTY, [["a", ""], ["é", "d"]])
    ),
    *(
        case("StringToHashBucketStrong", TEXTS, num_buckets=buckets, key=key)
        for buckets in BUCKETS
        for key in ([0, 0], [3, -5], [123456789012345, 2**62])
    ),
    case("StringToHashBucketStrong", "a", num_buckets=5, key=[1], message=True),
)
