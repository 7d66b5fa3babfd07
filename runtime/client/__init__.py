"""The front end: building graphs in Python."""
