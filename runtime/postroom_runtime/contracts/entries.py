"""The types of owner-inbox entries that tell of other entries, and are no card of their own."""

from typing import Final

RESOLVED: Final = "approval_resolved"
"""How a card was answered (I-28)."""

GRANTED: Final = "permission"
"""A standing permission was given."""

REVOKED: Final = "permission_revoked"
"""A standing permission was ended."""

QUIET: Final = frozenset({RESOLVED, GRANTED, REVOKED})
"""Entries about what the owner did: kept in the history, never news, never pushed."""
