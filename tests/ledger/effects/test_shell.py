"""The words of shell commands: the quick way finds what the lexer finds."""

import shlex

from hypothesis import given
from hypothesis import strategies as st

from ledger.effects.shell import simple_commands

SEPARATORS = {";", "&", "&&", "||", "|", "|&", "(", ")", "\n", "{", "}", "!"}
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
                if word not in SEPARATORS:
                    words.append(word)
                elif words:
                    found.append(words)
                    words = []
        except ValueError:
            words = words or line.split()
        if words:
            found.append(words)
    return found
