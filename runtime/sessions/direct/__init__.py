"""The session of the direct runtime, in this process (target "")."""
