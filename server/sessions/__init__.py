"""Open, use and close the sessions of clients."""
