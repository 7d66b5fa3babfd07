"""Served models that are replicas of Ray Serve, as a front reaches them."""
