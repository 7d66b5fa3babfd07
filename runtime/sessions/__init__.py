"""Sessions: the abstract RuntimeSession, its options, and the factories that make sessions."""
