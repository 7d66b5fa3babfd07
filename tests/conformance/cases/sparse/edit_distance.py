"""EditDistance."""

import numpy as np

from tests.conformance.case import case

HYPOTHESIS = np.int64([[0, 0], [0, 1], [1, 0], [2, 0], [2, 1], [2, 2]])
TRUTH = np.int64([[0, 0], [0, 1], [0, 2], [2, 0], [3, 0]])
SAID, MEANT = np.int32([1, 2, 9, 4, 5, 6]), np.int32([1, 3, 2, 5, 7])
WORDS = np.array([b"a", b"b", b"c", b"d", b"e", b"f"], object)
SHAPES = np.int64([4, 3]), np.int64([4, 3])

CASES = (
    *(
        case("EditDistance", HYPOTHESIS, said, SHAPES[0], TRUTH, meant, SHAPES[1], normalize=whole)
        for said, meant in ((SAID, MEANT), (WORDS, WORDS[:5]))
        for whole in (True, False)
    ),
    *(
        case(
            "EditDistance", HYPOTHESIS + off, SAID, SHAPES[0], TRUTH, MEANT, SHAPES[1], message=True
        )
        for off in (100, -1250999896764)
    ),
    case("EditDistance", HYPOTHESIS[:0], SAID[:0], SHAPES[0], TRUTH, MEANT, SHAPES[1]),
    case("EditDistance", HYPOTHESIS, SAID, np.int64([3, 3]), TRUTH, MEANT, SHAPES[1]),
    case("EditDistance", HYPOTHESIS, SAID, np.int64([3, 3, 1]), TRUTH, MEANT, SHAPES[1]),
    *(
        case("EditDistance", *hypothesis, *truth, message=True)
        for hypothesis, truth in (
            ((HYPOTHESIS, SAID, np.int64([4, -1])), (TRUTH, MEANT, SHAPES[1])),
            ((HYPOTHESIS, SAID, np.int64([4, 2**62])), (TRUTH, MEANT, SHAPES[1])),
            ((HYPOTHESIS, SAID, SHAPES[0][:1]), (TRUTH, MEANT, SHAPES[1])),
            ((HYPOTHESIS, SAID, SHAPES[0]), (TRUTH[0], MEANT, SHAPES[1])),
            ((HYPOTHESIS, SAID[:2], SHAPES[0]), (TRUTH, MEANT, SHAPES[1])),
            ((HYPOTHESIS, SAID, SHAPES[0]), (TRUTH, MEANT[:2], SHAPES[1])),
            ((HYPOTHESIS, SAID, SHAPES[0]), (TRUTH[:, :1], MEANT, SHAPES[1][:1])),
            (
                (HYPOTHESIS.repeat(2, 1)[:, :3], SAID, np.int64([4, 4, 3])),
                (TRUTH, MEANT, SHAPES[1]),
            ),
        )
    ),
)
