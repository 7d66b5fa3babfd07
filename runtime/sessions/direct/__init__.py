"""DirectSession: the session that runs graphs in this process; its target is ""."""
