"""Write examples/models/counter: a stateful model in the style of TensorFlow 1.

Requires tensorflow. Every signature returns the count after its step.
"""

import pathlib

import tensorflow as tf

MODEL = pathlib.Path(__file__).parent / "models" / "counter" / "1"
v1 = tf.compat.v1


def export() -> None:
    """Save signatures get_counter, incr_counter, incr_counter_by (delta) and reset_counter."""
    with tf.Graph().as_default(), v1.Session() as session:
        count = v1.get_variable("counter", initializer=0.0, use_resource=False)
        delta = v1.placeholder(tf.float32, [], name="delta")
        outputs = {
            "get_counter": tf.identity(count, name="get_counter"),
            "incr_counter": v1.assign_add(count, 1.0, name="incr_counter"),
            "incr_counter_by": v1.assign_add(count, delta, name="incr_counter_by"),
            "reset_counter": v1.assign(count, 0.0, name="reset_counter"),
        }
        info = v1.saved_model.build_tensor_info
        signatures = {
            name: v1.saved_model.build_signature_def(
                {"delta": info(delta)} if name == "incr_counter_by" else {},
                {"output": info(output)},
                "tensorflow/serving/predict",
            )
            for name, output in outputs.items()
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(MODEL))
        builder.add_meta_graph_and_variables(session, ["serve"], signature_def_map=signatures)
        builder.save()


if __name__ == "__main__":
    export()
    print(f"wrote {MODEL}")
