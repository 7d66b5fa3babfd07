"""RunMetadata with FULL_TRACE, and a Chrome trace made from it."""

import json
import sys

import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

tf.disable_eager_execution()
x = tf.placeholder(tf.float32, [4, 4], name="x")
y = tf.linalg.matmul(x, x, name="product")
options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
metadata = tf.RunMetadata()
with tf.Session(sys.argv[1]) as session:
    session.run(y, {x: [[1.0] * 4] * 4}, options=options, run_metadata=metadata)
stats = metadata.step_stats.dev_stats
names = {node.node_name for device in stats for node in device.node_stats}
assert "product" in names, names
assert any(node.name == "product" for g in metadata.partition_graphs for node in g.node)
trace = timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
events = json.loads(trace)["traceEvents"]
assert any(event.get("args", {}).get("name") == "product" for event in events)
print(f"{len(names)} nodes traced, {len(events)} trace events")
