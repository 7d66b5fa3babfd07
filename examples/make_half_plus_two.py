"""Write examples/models/half_plus_two: y = x / 2 + 2, with predict, classify and regress.

Requires tensorflow. The signatures take tensors (`serving_default`) or serialized tf.Examples.
"""

import pathlib

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

MODEL = pathlib.Path(__file__).parent / "models" / "half_plus_two" / "1"
SPEC = {"x": tf.io.FixedLenFeature([1], tf.float32)}


class HalfPlusTwo(tf.Module):
    """The model; its weights are variables, so that loading it includes a restore."""

    def __init__(self) -> None:
        super().__init__()
        self.a = tf.Variable(0.5, name="a")
        self.b = tf.Variable(2.0, name="b")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def predict(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": self.a * x + self.b}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"outputs": self.a * tf.io.parse_example(inputs, SPEC)["x"] + self.b}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        scores = self.a * tf.io.parse_example(inputs, SPEC)["x"] + self.b
        classes = tf.fill(tf.shape(scores), "y")
        return {"classes": classes, "scores": scores}


def export() -> None:
    """Save the model with the method names that classify and regress requests require."""
    model = HalfPlusTwo()
    signatures = {
        "serving_default": model.predict,
        "regress_x_to_y": model.regress,
        "classify_x_to_y": model.classify,
    }
    tf.saved_model.save(model, str(MODEL), signatures=signatures)
    # `tf.saved_model.save` sets every method name to "predict": set the right ones in the file.
    path = MODEL / "saved_model.pb"
    proto = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    signature_def = proto.meta_graphs[0].signature_def
    signature_def["regress_x_to_y"].method_name = "tensorflow/serving/regress"
    signature_def["classify_x_to_y"].method_name = "tensorflow/serving/classify"
    path.write_bytes(proto.SerializeToString(deterministic=True))


if __name__ == "__main__":
    export()
    print(f"wrote {MODEL}")
