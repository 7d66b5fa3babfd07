"""List the devices of a server of one task."""

import sys

import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
with tf.Session(sys.argv[1]) as session:
    devices = session.list_devices()
    with tf.device(devices[0].name):
        assert session.run(tf.constant(1.0) + 1.0) == 2.0
assert devices[0].device_type == "CPU"
print(", ".join(device.name for device in devices))
