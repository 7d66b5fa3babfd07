"""The models of the corpus and of the benchmarks, as Keras and TensorFlow build them."""
