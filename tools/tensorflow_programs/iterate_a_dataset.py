"""Input from tf.data: one-shot, initializable and reinitializable iterators, a fed handle."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
squares = tf.data.Dataset.range(10).map(lambda k: k * k, num_parallel_calls=2)
squares = squares.filter(lambda k: tf.equal(k % 2, 0)).repeat(2).batch(4).prefetch(1)
one_shot = tf.data.make_one_shot_iterator(squares)
numbers = one_shot.get_next()

limit = tf.placeholder(tf.int64, [], name="limit")
shuffled = tf.data.Dataset.range(limit).shuffle(100, seed=1)
initializable = tf.data.make_initializable_iterator(shuffled)
drawn = initializable.get_next()

words = tf.data.Dataset.from_tensor_slices(["a b", "c", "d e f"])
words = words.map(lambda text: tf.strings.split([text]).values)
padded = tf.data.Dataset.zip((words, tf.data.Dataset.range(3))).padded_batch(3, ([None], []))
handle = tf.placeholder(tf.string, [], name="handle")
text, index = tf.data.Iterator.from_string_handle(
    handle, tf.data.get_output_types(padded), tf.data.get_output_shapes(padded)
).get_next()
texts = tf.data.make_one_shot_iterator(padded)

either = tf.data.Iterator.from_structure(tf.int64, tf.TensorShape([]))
first, second = (
    either.make_initializer(tf.data.Dataset.range(*bounds)) for bounds in ((3,), (10, 12))
)
element = either.get_next()


def rest(session: tf.Session, fetch: tf.Tensor) -> list:
    """Return the values of `fetch` until the iterator ends."""
    values = []
    while True:
        try:
            values.append(session.run(fetch).tolist())
        except tf.errors.OutOfRangeError:
            return values


with tf.Session(sys.argv[1]) as session:
    found = rest(session, numbers)
    assert found == [[0, 4, 16, 36], [64, 0, 4, 16], [36, 64]], found
    for count in (5, 8):
        session.run(initializable.initializer, {limit: count})
        assert sorted(rest(session, drawn)) == list(range(count))
    fed = {handle: session.run(texts.string_handle())}
    values = session.run([text, index], fed)
    assert values[0].tolist() == [[b"a", b"b", b""], [b"c", b"", b""], [b"d", b"e", b"f"]]
    assert values[1].tolist() == [0, 1, 2]
    for initializer, expected in ((first, [0, 1, 2]), (second, [10, 11])):
        session.run(initializer)
        assert rest(session, element) == expected
print("four kinds of iterators, to their ends")
