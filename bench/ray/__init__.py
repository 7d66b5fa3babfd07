"""Sessions and models on a Ray cluster on this machine."""
