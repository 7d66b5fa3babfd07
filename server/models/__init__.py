"""Find, load, serve and unload the versions of models."""
