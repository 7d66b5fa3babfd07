"""Steps of sessions as JSON and as the master service's messages."""
