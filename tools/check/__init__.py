"""Compare Runstep with TensorFlow and with clients of others: one program a file."""
