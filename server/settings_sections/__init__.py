"""The sections of the settings: one model of pydantic for each, and what their values mean."""
