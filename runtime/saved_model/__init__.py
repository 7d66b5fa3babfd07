"""SavedModels: loading, inspecting, exporting."""
