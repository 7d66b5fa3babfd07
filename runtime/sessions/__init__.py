"""Sessions and the factories that make them."""
