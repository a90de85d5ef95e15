"""What importers of plain traces share: drafts, times, a list of messages read as a conversation, calls on a wire."""
