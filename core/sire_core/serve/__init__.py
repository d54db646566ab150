"""An index as a server for agents: `mcp_server` over what `tools` can do."""
