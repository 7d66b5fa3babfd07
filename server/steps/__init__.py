"""The one lane for steps: what every front's request passes between its codec and a session."""
