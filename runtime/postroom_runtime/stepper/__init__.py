"""One agent loop and its four receive points: when mail is read, and what that does."""
