"""Mutations are determined by their random numbers, and smaller forms are smaller."""

from __future__ import annotations

import json
import random

import pytest

import protos as pb
from runtime.framework.io.sstable import read_table, write_table
from server.rest.session_docs import half_plus_two_graph
from tests.fuzz.mutate_bytes import join_frames, mutated_bytes, smaller_bytes, split_frames
from tests.fuzz.mutate_json import mutated_json, smaller_json
from tests.fuzz.mutate_messages import mutate_message, smaller_messages
from tests.fuzz.mutate_tables import mutated_table

TRIES = 200


def _message(seed: int) -> bytes:
    graph = half_plus_two_graph()
    random_state = random.Random(seed)
    for _ in range(5):
        mutate_message(graph, random_state, [half_plus_two_graph()])
    return graph.SerializePartialToString(deterministic=True)


def _table(seed: int) -> bytes:
    entries = [(b"a", pb.BundleEntryProto(size=3).SerializeToString()), (b"b", b"\xff")]
    return mutated_table(write_table(entries), random.Random(seed), lambda _: pb.BundleEntryProto)


MUTATIONS = {
    "bytes": lambda seed: mutated_bytes(b"some bytes", random.Random(seed), [b"token"]),
    "json": lambda seed: mutated_json({"a": [1, {"b": "c"}]}, random.Random(seed), ("key",)),
    "message": _message,
    "table": _table,
}


@pytest.mark.parametrize("kind", MUTATIONS)
def test_the_same_random_numbers_give_the_same_mutations(kind: str) -> None:
    made = [MUTATIONS[kind](seed) for seed in range(TRIES)]
    assert made == [MUTATIONS[kind](seed) for seed in range(TRIES)]
    assert len(set(made)) > TRIES / 4


def test_tables_mostly_keep_their_checksums() -> None:
    whole = 0
    for seed in range(TRIES):
        try:
            list(read_table(_table(seed)))
        except Exception:
            continue
        whole += 1
    assert whole > TRIES / 2


def test_smaller_bytes_lack_a_part() -> None:
    found = list(smaller_bytes(b"abcd"))
    assert found[:2] == [b"cd", b"ab"]
    assert found[2:] == [b"bcd", b"acd", b"abd", b"abc"]


def test_smaller_documents_lack_a_part() -> None:
    found = [json.loads(each) for each in smaller_json(b'{"a": [1, 2]}')]
    assert found == [{}, {"a": [2]}, {"a": [1]}]
    assert list(smaller_json(b"{")) == []


def test_smaller_messages_lack_a_field_or_an_element() -> None:
    node = pb.NodeDef(name="n", input=["a", "b"])
    node.attr["T"].type = pb.DT_FLOAT
    found = list(smaller_messages(node))
    assert pb.NodeDef(name="n", input=["a"], attr=node.attr) in found
    assert pb.NodeDef(input=["a", "b"], attr=node.attr) in found
    assert pb.NodeDef(name="n", input=["a", "b"]) in found
    assert all(each.ByteSize() < node.ByteSize() for each in found)


def test_frames_are_joined_and_split() -> None:
    frames = [b"", b"abc", b"\0" * 300]
    assert split_frames(join_frames(frames)) == frames
