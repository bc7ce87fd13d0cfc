"""Live views of sessions."""
