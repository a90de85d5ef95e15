"""Verbs of two words and more, read as one: `turn the offer down` is `reject the offer`. Pure."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_BETWEEN = (
    r"((?: (?!(?:and|or|but|to|not|never|if|when|unless|before|after|of|in|on|at|by|for|from|with|that|which|who"
    r"|is|are|was|were|right|straight)\b)[\w'-]+){0,3}?)"
)
"""What may stand between a verb and its particle: no other clause, nothing with a small word of its own."""
_END = r"\b(?!(?: [\w'-]+){0,6} than\b)"
"""After what ends one: `make larger than` compares."""
_NOT_UP_TO = r"\b(?! to\b)"
"""After `up`: `use up to four` is no `use up`."""
_DOUBLED = re.compile(r"(?:^|[^aeiou])[aeiou][bdgmnprt]$")
_ON_ITS_LAST = frozenset("occur refer prefer defer permit omit submit commit admit control begin".split())


class PhrasalVerbs:
    """All of them, each with the verb that says the same."""

    def __init__(self, lines: Iterable[str], irregular: dict[str, str]) -> None:
        """`lines`: `turn down = reject`; the first word is the verb. `irregular`: forms of verbs -> verb."""
        self._by_last: dict[str, list[_Verb]] = {}
        for line in lines:
            some, _, target = line.partition(" = ")
            verb, *rest = some.split()
            forms = dict(_forms(verb, irregular))
            targets = {kind: form for form, kind in _forms(target.strip(), irregular)}
            end = _NOT_UP_TO if rest[-1] == "up" else _END
            pattern = re.compile(rf"\b({'|'.join(sorted(forms))})\b{_BETWEEN} {' '.join(rest)}{end}")
            puts = {form: targets.get(kind, target.strip()) for form, kind in forms.items()}
            self._by_last.setdefault(rest[-1], []).append(_Verb(pattern, puts))

    def single(self, text: str) -> str:
        """A normalised text with one verb for each of them."""
        words = set(text.split())
        for last in sorted(self._by_last.keys() & {word.strip(".,;:!?)") for word in words}):
            for verb in self._by_last[last]:
                if not words.isdisjoint(verb.puts):
                    text = verb.pattern.sub(verb.put, text)
        return text


class _Verb(NamedTuple):
    pattern: re.Pattern[str]
    puts: dict[str, str]
    """What is read in place of each form."""

    def put(self, found: re.Match[str]) -> str:
        return f"{self.puts[found[1]]}{found[2]}"


def _forms(verb: str, irregular: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The forms of a verb, each with its kind."""
    stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
    if _DOUBLED.search(verb) and (len(verb) <= 4 or verb in _ON_ITS_LAST):
        stem += verb[-1]
    is_y = verb.endswith("y") and verb[-2:-1] not in "aeiou"
    yield verb, "base"
    yield (
        f"{verb[:-1]}ies" if is_y else f"{verb}{'es' if verb.endswith(('s', 'x', 'ch', 'sh', 'o')) else 's'}",
        "third",
    )
    yield f"{stem}ing", "ing"
    own = [form for form, base in irregular.items() if base == verb and form != verb]
    if own:
        for form in own:
            yield form, "past"
    else:
        yield f"{verb[:-1]}ied" if is_y else f"{stem}ed", "past"
