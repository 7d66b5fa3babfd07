"""Candidate samplers: results that do not depend on the random draws."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import case

TRUE = np.array([[1, 2], [3, 1]], np.int64)
SAMPLERS = (
    "LearnedUnigramCandidateSampler",
    "LogUniformCandidateSampler",
    "UniformCandidateSampler",
)


def sampler(op: str, classes: object = TRUE, **options: object) -> object:
    settings: dict[str, object] = {"num_true": 2, "num_sampled": 4, "unique": True, "range_max": 9}
    return case(op, classes, **(settings | options))


UNIGRAMS = (1.0, 4.0, 2.0, 1.0, 8.0, 1.0, 3.0, 2.0, 5.0)
CASES = (
    *(sampler(op, shape_only=True, unique=unique) for op in SAMPLERS for unique in (True, False)),
    # With one class every draw is the same, so the expected counts can be compared.
    *(
        sampler(op, np.zeros((1, 2), np.int64), range_max=1, num_sampled=count, unique=unique)
        for op in SAMPLERS
        for count, unique in ((3, False), (1, True))
    ),
    *(sampler(op, range_max=3, message=True) for op in SAMPLERS),
    *(sampler(op, TRUE[:, :1]) for op in SAMPLERS),
    *(sampler(op, TRUE[0]) for op in SAMPLERS),
    *(
        case("AllCandidateSampler", TRUE, num_true=2, num_sampled=5, unique=unique)
        for unique in (True, False)
    ),
    case("AllCandidateSampler", TRUE, num_true=1, num_sampled=5, unique=True),
    *(
        sampler(op, np.zeros((1, 2), np.int64), range_max=1, num_sampled=3, unique=False, **options)
        for op, options in (
            ("ThreadUnsafeUnigramCandidateSampler", {}),
            ("FixedUnigramCandidateSampler", {"unigrams": (2.0,)}),
        )
    ),
    sampler("ThreadUnsafeUnigramCandidateSampler", shape_only=True),
    *(
        sampler("FixedUnigramCandidateSampler", shape_only=True, unigrams=UNIGRAMS, **options)
        for options in ({}, {"distortion": 0.5}, {"num_shards": 2, "shard": 1, "range_max": 4})
    ),
    sampler(
        "FixedUnigramCandidateSampler",
        np.array([[1, 1]], np.int64),
        range_max=2,
        num_sampled=3,
        unique=False,
        unigrams=(4.0,),
        num_reserved_ids=1,
    ),
    sampler("FixedUnigramCandidateSampler"),
    sampler("FixedUnigramCandidateSampler", unigrams=UNIGRAMS, num_shards=2, shard=2),
    case("ComputeAccidentalHits", TRUE, np.array([5, 1, 3], np.int64), num_true=2),
    case("ComputeAccidentalHits", TRUE, np.array([7], np.int64), num_true=2),
    case("ComputeAccidentalHits", TRUE, np.array([[7]], np.int64), num_true=2),
    case("ComputeAccidentalHits", TRUE, np.array([7], np.int64), num_true=1),
)
