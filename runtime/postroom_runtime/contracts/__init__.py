"""Words and errors: frozen records and pure rules; no loop, no I/O."""
