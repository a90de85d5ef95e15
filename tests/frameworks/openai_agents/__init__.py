"""The hook of the OpenAI Agents SDK."""
