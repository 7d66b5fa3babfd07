"""Who a caller is and what it may do: pure decisions, independent of the transport."""
