"""The magics, one module per concern."""
