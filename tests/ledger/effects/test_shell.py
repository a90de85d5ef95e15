"""The words of shell commands: the quick way finds what the lexer finds."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.effects.shell import simple_commands, unwrapped

SEPARATORS = {"\n", "{", "}", "!"}
PLAIN = "ab1-./=:$*{}![]~^%+,@? \t;&|<>()\n\r"


@given(st.text(PLAIN + "'\"\\#é\x0b\x85", max_size=12) | st.text(PLAIN, max_size=20))
def test_a_line_without_quotes_is_taken_apart_as_the_lexer_does(command: str) -> None:
    assert list(simple_commands(command)) == list(by_lexer(command))


def by_lexer(command: str) -> list[list[str]]:
    """The simple commands, each line by the standard library's lexer."""
    found: list[list[str]] = []
    for line in command.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&\n")
        lexer.whitespace_split, lexer.commenters = True, "#"
        words: list[str] = []
        try:
            for word in lexer:
                if word not in SEPARATORS and not (word and set(word) <= set(";&|()")):
                    words.append(word)
                elif words:
                    found.append(words)
                    words = []
        except ValueError:
            words = words or line.split()
        if words:
            found.append(words)
    return found


def test_what_follows_a_substitution_in_a_loop_is_a_command_of_its_own() -> None:
    found = list(simple_commands("for h in $(cat hosts); do ssh $h uptime; done"))
    assert ["do", "ssh", "$h", "uptime"] in found


@pytest.mark.parametrize(
    "command",
    [
        "xargs -a hosts -I{} ssh {} uptime",
        "xargs -P 4 -n 1 -I % ssh % uptime",
        "timeout -k 5 30 ssh n1 uptime",
        "nice -n 10 ssh n1 uptime",
        "time -f %e ssh n1 uptime",
    ],
)
def test_the_value_of_an_option_of_what_starts_a_program_is_not_the_program(command: str) -> None:
    assert unwrapped(command.split())[0] == "ssh"
