"""Devices and the factories that make them."""
