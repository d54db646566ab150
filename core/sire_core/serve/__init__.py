"""Serves an index: to agents by `mcp_server` over `tools`, to people by `page`."""
