"""A room and its sessions: everything below held together."""
