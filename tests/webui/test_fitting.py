"""What fits on a page is counted in bytes: laws of the counting."""

import html

from hypothesis import given
from hypothesis import strategies as st

from webui.fitting import fit, fitting, weight
from webui.visible import visible

_TEXTS = st.text(st.characters(codec=None), max_size=200)


@given(_TEXTS)
def test_a_weight_is_that_of_the_escaped_text(text: str) -> None:
    assert weight(text) == len(
        html.escape(visible(text)).replace("&#x27;", "&#39;").replace("&quot;", "&#34;").encode()
    )


@given(_TEXTS, st.integers(0, 500))
def test_the_longest_beginning_that_fits_is_kept(text: str, most: int) -> None:
    kept = fit(text, most)
    assert text.startswith(kept)
    assert weight(kept) <= most
    assert kept == text or weight(text[: len(kept) + 1]) > most


@given(st.lists(st.lists(st.integers(1, 50), max_size=12), max_size=6), st.integers(0, 400))
def test_lists_take_turns_until_nothing_fits(lists: list[list[int]], most: int) -> None:
    counts = fitting(lists, lambda weighs: weighs, most)
    assert all(count >= min(1, len(items)) for count, items in zip(counts, lists, strict=True))
    taken = sum(sum(items[:count]) for count, items in zip(counts, lists, strict=True))
    firsts = sum(items[0] for items in lists if items)
    assert taken <= max(most, firsts)
    if sum(map(sum, lists)) <= most:
        assert counts == [len(items) for items in lists]
