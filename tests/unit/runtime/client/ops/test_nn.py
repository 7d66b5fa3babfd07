"""Convolution and pooling of images."""

from __future__ import annotations

import runtime.client as tf
from tests.unit.runtime.client.evaluation import values


def test_images(graph):
    images, filters = tf.ones([2, 5, 5, 3]), tf.ones([2, 2, 3, 4])
    convolved = tf.nn.conv2d(images, filters, strides=[1, 2, 2, 1], padding="SAME")
    pooled = tf.nn.max_pool(convolved, [1, 2, 2, 1], [1, 1, 1, 1], "VALID")
    means = tf.nn.avg_pool(images, 5, 1, "VALID")
    assert (convolved.shape, pooled.shape) == ([2, 3, 3, 4], [2, 2, 2, 4])
    flat = tf.reshape(pooled, [-1, 16])
    assert flat.shape == [2, 16]
    found = values(convolved[0, :, :, 0], pooled[0, 0, 0], means[0, 0, 0])
    assert found == [[[12, 12, 6], [12, 12, 6], [6, 6, 3]], [12] * 4, [1, 1, 1]]
