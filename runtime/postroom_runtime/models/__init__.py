"""Models: scripts written in Python, and providers reached over HTTP."""
