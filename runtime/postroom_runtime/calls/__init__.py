"""Tool calls: tools from functions, the table of calls, and what runs them."""
