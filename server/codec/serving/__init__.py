"""TensorFlow Serving's REST bodies: requests and answers of models."""
