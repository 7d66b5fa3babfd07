"""RandomIndexShuffle: positions of indices in random permutations, compared exactly."""

import numpy as np

from tests.conformance.case import case

TYPES = (np.int32, np.int64, np.uint32, np.uint64)
SEED = np.int32([74, 1234567, -9])
SEEDS = np.arange(30, dtype=np.int64).reshape(10, 3) * 123456789012
TEN = np.arange(10, dtype=np.int32)

CASES = (
    *(
        case("RandomIndexShuffle", t(5), SEED, t(limit))
        for t in TYPES
        for limit in (5, 9, 1000, 65535, 65536, 100_000, 2_000_000_000)
    ),
    *(
        case("RandomIndexShuffle", np.int64(3), SEED, np.int64(limit))
        for limit in (2**32, 2**40 + 1, 2**61, 2**62 + 5)
    ),
    case("RandomIndexShuffle", np.uint64(2**63), SEED, np.uint64(2**64 - 1)),
    *(case("RandomIndexShuffle", TEN, SEED.astype(t), np.int32(9)) for t in TYPES),
    *(case("RandomIndexShuffle", TEN, SEEDS.astype(t), TEN + 300) for t in TYPES),
    *(case("RandomIndexShuffle", TEN, SEED, TEN + 70_000, rounds=r) for r in (4, 6, 8, 50)),
    case("RandomIndexShuffle", np.int32(0), SEED, np.int32(0)),
    case("RandomIndexShuffle", np.int32(2), SEED, TEN + 2),
    case("RandomIndexShuffle", np.int32(2), SEEDS, np.int32(7)),
    case("RandomIndexShuffle", TEN[:0], SEED, np.int32(7)),
    *(
        case("RandomIndexShuffle", *arguments, message=True)
        for arguments in (
            (TEN, SEED, TEN[:4] + 10), (TEN, SEEDS[:4], np.int32(9)),
            (TEN[None], SEED, np.int32(9)), (TEN, SEED[:2], np.int32(9)),
            (TEN, SEED, np.int32(8)), (np.int32(-1), SEED, np.int32(8)),
            (np.int32(0), SEED, np.int32(-1)),
        )
    ),
)  # fmt: skip
