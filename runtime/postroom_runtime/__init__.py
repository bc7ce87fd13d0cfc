"""Everything of Postroom that runs without a notebook."""

__version__ = "0.1.0"
