"""An index served: to agents by `mcp_server`, over what `tools` can do; to people by `page`."""
