"""Served models and their versions."""
