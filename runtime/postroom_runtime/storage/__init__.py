"""Where a room's journal is kept: in memory, or in a DuckDB file."""
