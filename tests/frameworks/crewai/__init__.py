"""The CrewAI hook in the real framework."""
