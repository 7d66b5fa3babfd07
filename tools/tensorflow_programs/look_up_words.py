"""Lookup tables: constant, from a file, with out-of-vocabulary buckets, mutable; and top-k."""

import os
import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
vocabulary = os.path.join(sys.argv[2], "vocabulary.txt")
with open(vocabulary, "w") as file:
    file.write("red\ngreen\nblue\n")
colours = tf.placeholder(tf.string, [None], name="colours")
constant = tf.lookup.StaticHashTable(
    tf.lookup.KeyValueTensorInitializer(["red", "blue"], [10, 30], tf.string, tf.int64), -1
)
from_file = tf.lookup.StaticVocabularyTable(
    tf.lookup.TextFileInitializer(
        vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
        tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
    ),
    2,
)  # fmt: skip
names = tf.lookup.StaticHashTable(
    tf.lookup.TextFileInitializer(
        vocabulary, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER,
        tf.string, tf.lookup.TextFileIndex.WHOLE_LINE,
    ),
    "?",
)  # fmt: skip
counts = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, 0, name="counts")
seen = counts.lookup(colours) + 1
count = counts.insert(colours, seen)
_, best = tf.nn.top_k([0.1, 0.7, 0.2], 2)
with tf.Session(sys.argv[1]) as session:
    session.run(tf.tables_initializer())
    feeds = {colours: ["blue", "red", "pink"]}
    assert session.run(constant.lookup(colours), feeds).tolist() == [30, 10, -1]
    index = session.run(from_file.lookup(colours), feeds).tolist()
    assert index[:2] == [2, 0] and index[2] in (3, 4), index
    assert session.run([from_file.size(), constant.size()]) == [5, 2]
    assert session.run(names.lookup(tf.cast(best, tf.int64))).tolist() == [b"green", b"blue"]
    for _ in range(3):
        session.run(count, feeds)
    session.run(count, {colours: ["red"]})
    keys, values = session.run(counts.export())
    found = dict(zip(keys.tolist(), values.tolist(), strict=True))
    assert found == {b"blue": 3, b"red": 4, b"pink": 3}, found
print("four tables")
