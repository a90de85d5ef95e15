"""Text as people see it: nothing hidden, nothing moved, nothing lost."""

import html
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webui.hostile.texts import CORPUS
from webui.visible import colored, cut, visible

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


@given(st.text(st.characters(codec=None)))
def test_nothing_stays_hidden(text: str) -> None:
    shown = visible(text)
    assert not [char for char in shown if unicodedata.category(char) in _HIDDEN and char not in "\n\t"]
    shown.encode()


@given(st.text(st.characters(codec=None)))
def test_spans_show_the_same_text_but_for_colours(text: str) -> None:
    assert "".join(span.text for span in colored(text)).replace("\n", "") in visible(text).replace(
        "\n", ""
    ) or ("\x1b[" in text)


@pytest.mark.parametrize("name", sorted(CORPUS))
def test_the_corpus_is_shown(name: str) -> None:
    assert not set(visible(CORPUS[name])) & set("\x00\x07\x08\r\x1b\x7f\x9b\u202e\u2066\u200b\ufeff")


def test_characters_are_named() -> None:
    assert visible("a\x00b\u202ec\ud83d") == "a⟨NUL⟩b⟨RLO⟩c⟨U+D83D⟩"
    assert visible("naïve 日本 🎉 \n\t") == "naïve 日本 🎉 \n\t"


def test_colours_become_classes_and_other_escapes_are_shown() -> None:
    spans = colored("\x1b[1;31mred\x1b[0m plain \x1b[2Jgone")
    assert [(span.style, span.text) for span in spans] == [
        ("ansi-bold ansi-red", "red"),
        ("", " plain ⟨ESC⟩[2Jgone"),
    ]


def test_a_cut_text_is_one_line() -> None:
    assert cut("a\nb" + "c" * 100, 10) == "a bcccccc…"
    assert cut("short", 10) == "short"


def test_marks_without_end_are_named() -> None:
    assert visible("e\u0301\u0323") == "e\u0301\u0323"
    shown = visible("Z" + "\u0301" * 1000 + "A\u0301")
    assert shown.startswith("Z" + "\u0301" * 8 + "⟨U+0301⟩") and shown.endswith("⟨U+0301⟩A\u0301")


@given(st.text(st.characters(codec=None), max_size=400), st.integers(2, 300))
def test_a_cut_text_takes_bounded_room(text: str, longest: int) -> None:
    shown = cut(text, longest)
    assert len(shown) <= longest and "\n" not in shown
    assert len(html.escape(shown).encode()) <= max(120, longest * 3 // 2) + 30
