"""Read and write the steps of sessions as JSON and as messages of TensorFlow's master service."""
