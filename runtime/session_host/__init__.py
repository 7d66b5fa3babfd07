"""The program of a host actor: the sessions, models and pools of one node of a Ray cluster."""
