"""JSON values, and the fields that a newer Postroom wrote and this one does not know.

Every stored record has a field ``extra``: unknown fields land there when the record is read and are
written back when it is stored again, so an older Postroom loses nothing of a newer one's.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, or lists and string-keyed dicts of them."""

Extra: TypeAlias = Mapping[str, Json] | None
