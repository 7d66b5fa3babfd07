"""Sessions that clients hold."""
