"""What a person asked for: the words that make a change of what governs the agent an authorised one."""

import pytest

from ledger.audit.asking import Asked, Wishes

CLAUDE, AGENTS, SETTINGS = "/r/CLAUDE.md", "/r/AGENTS.md", "/r/.claude/settings.json"


@pytest.mark.parametrize(
    ("text", "path", "asked"),
    [
        ("Please add to CLAUDE.md that we use pnpm.", CLAUDE, "asked"),
        ("Bitte ergänze in der AGENTS.md, dass wir pnpm benutzen.", AGENTS, "asked"),
        ("Update our agent instructions: from now on we use pnpm.", AGENTS, "asked"),
        ("Remove the rule about pushing from CLAUDE.md, we changed the process.", CLAUDE, "asked"),
        ("I'm tired of approving npm test: add a permission rule for it.", SETTINGS, "asked"),
        ("Create a skill that deploys the site.", "/r/.claude/skills/deploy/SKILL.md", "asked"),
        ("Make me a code-reviewer subagent.", "/r/.claude/agents/code-reviewer.md", "asked"),
        ("Set up a PostToolUse hook that runs prettier.", SETTINGS, "asked"),
        ("Add the playwright MCP server to this project.", "/r/.mcp.json", "asked"),
        ("Remember that I prefer tabs.", "~/.claude/projects/x/memory/MEMORY.md", "asked"),
        ("Don't forget to update CLAUDE.md.", CLAUDE, "asked"),
        ("<command-name>/init</command-name>", CLAUDE, "asked"),
        ("Fix the failing test. Do not touch CLAUDE.md.", CLAUDE, "refused"),
        ("Leave AGENTS.md alone and update the docs.", AGENTS, "refused"),
        ("Read CLAUDE.md and follow it. Then fix the login bug.", CLAUDE, "unasked"),
        ("Write the missing tests according to AGENTS.md.", AGENTS, "unasked"),
        ("Fix the test as CLAUDE.md says.", CLAUDE, "unasked"),
        ("Update the README: mention pnpm.", CLAUDE, "unasked"),
        ("Every shell command must run through ./scripts/safe-run.", SETTINGS, "unasked"),
        ("# Task\nFix the import.", CLAUDE, "unasked"),
    ],
)
def test_a_change_is_asked_for_in_words(text: str, path: str, asked: Asked) -> None:
    wishes = Wishes()
    wishes.said(text)
    assert wishes.on(path) == asked


@pytest.mark.parametrize(
    ("offer", "asked"),
    [
        ("Fixed. Shall I add a note about the fixture to CLAUDE.md?", "asked"),
        ("I'd like to record that in CLAUDE.md. OK?", "asked"),
        ("CLAUDE.md was changed by somebody. Shall I run the tests?", "unasked"),
    ],
)
def test_a_bare_yes_means_what_was_offered(offer: str, asked: Asked) -> None:
    wishes = Wishes()
    wishes.said("Fix the test.")
    wishes.offered(offer)
    wishes.said("yes please")
    assert wishes.on(CLAUDE) == asked


def test_to_go_on_is_to_want_what_was_wanted_before() -> None:
    wishes = Wishes()
    wishes.said("Write CLAUDE.md and the tests.")
    wishes.offered("The tests are done.")
    wishes.said("continue")
    assert wishes.on(CLAUDE) == "asked"
    wishes.said("Now fix the login bug.")
    assert wishes.on(CLAUDE) == "unasked"


def test_who_wants_something_added_wants_nothing_taken_away() -> None:
    wishes = Wishes()
    wishes.said("Add a line on pnpm to CLAUDE.md.")
    assert wishes.is_only_to_add()
    wishes.said("Add a line on pnpm to CLAUDE.md and remove the one on npm.")
    assert not wishes.is_only_to_add()
