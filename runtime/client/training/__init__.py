"""Optimisers, checkpoints, and the threads that feed queues (tf.compat.v1.train)."""
