"""The way that every step takes between a front's codec and a session."""
