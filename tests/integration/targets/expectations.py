"""Which error each case gives on each target: TensorFlow's, where it answers at all.

A column that is not there is another's (FALLBACK). `tensorflow` is a real TensorFlow master driven
by our client; its rows are those where our master departs from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from runtime.api import (
    AbortedError,
    AlreadyExistsError,
    CancelledError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    OutOfRangeError,
)

FALLBACK = {"http": "direct", "ray": "direct", "grpc": "direct", "tensorflow": "grpc"}
Error = tuple[type[OpError], str]

EXPECTED: dict[str, Mapping[str, Error]] = {
    "run before create": {
        "direct": (InvalidArgumentError, "Session was not created with a graph before Run()!"),
    },
    "create twice": {
        "direct": (AlreadyExistsError, "A Graph has already been created for this session."),
    },
    "call on a closed session": {"direct": (CancelledError, "Session has been closed.")},
    "step of a session that is closed": {
        # "Dequeue operation …", or "Run call …" of a step that its pool had not come to
        "direct": (CancelledError, "was cancelled"),
        # Requests overtake each other: a run may come after the close that was asked for later.
        "http": (CancelledError, ("was cancelled", "Session has been closed.")),
        "ray": (CancelledError, ("was cancelled", "Session has been closed.")),
        "grpc": (
            CancelledError,
            "Step was cancelled by an explicit call to `Session::Close()`.",
        ),
    },
    "unknown op": {"direct": (NotFoundError, "Op type not registered 'NoSuchOp'")},
    "extend with a known name": {"direct": (InvalidArgumentError, "n")},
    "extend on an unknown input": {"direct": (InvalidArgumentError, "nowhere")},
    "fetch of a node that was not added": {
        "direct": (InvalidArgumentError, "good"),
        "grpc": (NotFoundError, "FetchOutputs node good:0: not found"),
    },
    "nothing to run": {
        "direct": (InvalidArgumentError, "Must specify at least one target to fetch or execute."),
    },
    "unknown fetch": {
        "direct": (InvalidArgumentError, "nowhere:0"),
        "grpc": (NotFoundError, "FetchOutputs node nowhere:0: not found"),
    },
    "fetch of an output that the node lacks": {
        "direct": (OutOfRangeError, "does not have output 1"),
        "grpc": (InvalidArgumentError, "FetchOutputs n:1: output index too large, must be < 1"),
    },
    "unknown feed": {
        "direct": (InvalidArgumentError, "nowhere:0"),
        "grpc": (NotFoundError, "FeedInputs: unable to find feed output nowhere:0"),
    },
    "unknown target": {"direct": (NotFoundError, "nowhere")},
    "fed and fetched": {"direct": (InvalidArgumentError, "x:0 is both fed and fetched.")},
    "placeholder not fed": {
        "direct": (InvalidArgumentError, "You must feed a value for placeholder tensor 'x'"),
    },
    "feed of the wrong type": {
        "direct": (InvalidArgumentError, "to be float but int32 is provided"),
        "tensorflow": (InternalError, "Output 0 of type int32 does not match declared output"),
    },
    "shapes that do not fit": {"direct": (InvalidArgumentError, "Incompatible shapes: ")},
    "variable that was not initialised": {
        "direct": (FailedPreconditionError, "Could not find variable"),
    },
    "dequeue from a closed queue": {
        "direct": (OutOfRangeError, "is closed and has insufficient elements"),
    },
    "run after a reset": {
        "direct": (CancelledError, "Session has been closed."),
        "grpc": (AbortedError, "is not found."),
    },
    "callable of an unknown fetch": {
        "direct": (InvalidArgumentError, "nowhere"),
        "grpc": (NotFoundError, "FetchOutputs node nowhere:0: not found"),
    },
    "callable of an unknown feed": {
        "direct": (InvalidArgumentError, "nowhere"),
        "grpc": (NotFoundError, "FeedInputs: unable to find feed output nowhere:0"),
    },
    "callable of an unknown target": {"direct": (NotFoundError, "nowhere")},
    "callable with too few feeds": {
        "direct": (InvalidArgumentError, "Expected 1 feed tensors, but got 0"),
    },
    "unknown callable": {"direct": (InvalidArgumentError, "No such callable handle")},
    "released callable": {
        "direct": (InvalidArgumentError, "Attempted to run callable after handle was released"),
    },
    "part of a finished partial run": {
        "tensorflow": (InvalidArgumentError, "Must run PartialRunSetup before performing"),
        "direct": (InvalidArgumentError, "Must run 'setup' before performing partial runs!"),
    },
    "part without a setup": {
        "tensorflow": (InvalidArgumentError, "Must run PartialRunSetup before performing"),
        "direct": (InvalidArgumentError, "Must run 'setup' before performing partial runs!"),
    },
    "part fed again": {"direct": (InvalidArgumentError, "The feed p1:0 has already been fed.")},
    "part fetched again": {
        "direct": (InvalidArgumentError, "The fetch i1:0 has already been fetched."),
    },
    "part that needs more feeds": {
        "direct": (
            InvalidArgumentError,
            "can't be computed from the feeds that have been fed so far.",
        ),
    },
    "part with a feed that was not set up": {
        "direct": (
            InvalidArgumentError,
            "The feed sum:0 was not specified in partial_run_setup.",
        ),
    },
    "part with a fetch that was not set up": {
        "direct": (
            InvalidArgumentError,
            "The fetch i2:0 was not specified in partial_run_setup.",
        ),
    },
    "pool index out of range": {"direct": (InvalidArgumentError, "inter_op_thread_pool")},
}
