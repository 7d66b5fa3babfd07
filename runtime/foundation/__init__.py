"""Errors, thread pools, timers and hashes: code that depends on neither tensors nor graphs."""
