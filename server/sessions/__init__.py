"""The sessions that clients have opened."""
