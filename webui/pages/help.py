"""/help: keys, words, how to link to a place, how it looks."""

from webui.page import Context, Page

page = Page("Help", link="/help", order=90)


class Key(Context):
    """A key and what it does."""

    key: str
    """The key."""
    does: str
    """What it does."""


class Word(Context):
    """A word and what it means here."""

    word: str
    """The word."""
    means: str
    """Its meaning."""


class HelpContext(Context):
    """What help.html may use."""

    keys: list[Key]
    """Keys of all pages."""
    words: list[Word]
    """Words of all pages."""


_KEYS = {
    "j k": "next, previous event; J K by ten",
    "Enter": "open the event",
    "Esc": "close the event",
    "g G": "to the first, to the last event",
    ":": "go to a seq",
    "/": "to the search field",
    "] [": "next, previous weighty event",
    "} {": "on a finding: next, previous of its rule in the session",
    "n": "on a finding or an event: write a note",
    "s": "the state here",
    "d": "the diff from the record before",
    "a b": "on a diff: to one end, to the other",
    "f": "follow new events",
    "t": "light, dark, as the system",
    "?": "this page",
}
_WORDS = {
    "session": "one agent loop, a stream of records; a sub-agent is a session with a parent",
    "event": "a fact, past tense; a record is an event as stored: stamped and hashed",
    "seq": "place of a record in its session, from 1, without holes",
    "level": "how weighty an event is by its own facts: effect class, outcome, severity of a finding that names it",
    "state": "what is in force after a record: rules, open calls, approvals, budget, files, conversation",
    "grade": "how much a source can prove: wire, near-wire, semantic, skeleton",
    "lake": "the same records as Parquet files, to ask in SQL",
    "integrity": "what the last verification found; unknown until it has seen the last record",
}


@page.view("/help", template="help.html")
def show_help() -> HelpContext:
    """Keys and words."""
    return HelpContext(
        keys=[Key(key=key, does=does) for key, does in _KEYS.items()],
        words=[Word(word=word, means=means) for word, means in _WORDS.items()],
    )
