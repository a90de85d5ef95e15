"""How the OpenAI Agents SDK writes states, sessions and traces. May be imported by its importer alone."""
