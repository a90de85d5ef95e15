"""The MCP taps between a client and a server of the real SDK."""
