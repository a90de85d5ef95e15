"""The hook of Pydantic AI."""
