"""Read and write the bodies of TensorFlow Serving's REST requests and responses."""
