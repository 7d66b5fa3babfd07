"""REST resources: translate and delegate."""
