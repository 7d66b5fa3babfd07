"""Served models: sources, versions, labels, loading and unloading."""
