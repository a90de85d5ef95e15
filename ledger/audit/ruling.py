"""What a session's instructions say, and whether a change of a file is one of its own instructions."""

import re

from ledger.audit.bounding import SENTENCE_END, plain
from ledger.audit.controls import NOT_LIVE, TABLES, pattern
from ledger.audit.patching import Touch
from ledger.audit.weakening import compare

_MOST = 200_000
_LEAST = 20
_RULES = re.compile(
    r"\b(never|must|always|do not|don't|only|ask|may|shall|not|without|confirm|approv\w*|require\w*"
    r"|allowed|before|stop)\b",
    re.IGNORECASE,
)
_TEXT = re.compile(
    r"\.(md|mdc|txt|ya?ml|json|toml|j2|jinja2?|prompt|xml|ini|cfg)$|(^|/)[^./]+$", re.IGNORECASE
)
_ABOUT_DOCUMENTS = re.compile(r"(^|/)(README|CONTRIBUTING|CHANGELOG|docs?)[^/]*(/|\.md$|$)", re.IGNORECASE)
_PROMPTS = pattern(TABLES["files"]["prompts"])
_SPEAKS_OF_PROMPTS = re.compile(
    r"prompt|bot\b|chatbot|assistant|persona|instruction|template|LLM|the model|reply|replies|tone"
    r"|answers?\b",
    re.IGNORECASE,
)


class Rulings:
    """The instructions of one session."""

    def __init__(self) -> None:
        self._text = ""
        self._plain = ""

    def said(self, text: str) -> None:
        """Instructions say this too."""
        self._text = f"{self._text}\n{text}"[-_MOST:]
        self._plain = plain(self._text)

    def speaks_of(self, found: re.Pattern[str]) -> bool:
        """Whether instructions speak of something."""
        return found.search(self._text) is not None

    def is_own(self, touch: Touch, wanted: str) -> bool:
        """Whether a change is one of the session's own instructions: by the rule that it takes out, or by its name,
        where `wanted`, what a person said, is not about prompts and less is forbidden now.
        """
        if not _TEXT.search(touch.path) or _ABOUT_DOCUMENTS.search(touch.path):
            return False
        for sentence in SENTENCE_END.split(touch.replaced[:_MOST]):
            said = plain(sentence).strip("-*#• .")
            if len(said) >= _LEAST and _RULES.search(said) and said in self._plain:
                return True
        if (
            not _PROMPTS.search(touch.path)
            or NOT_LIVE.search(touch.path)
            or _SPEAKS_OF_PROMPTS.search(wanted)
        ):
            return False
        return touch.how == "delete" or compare(touch.replaced, touch.content or "").direction == "weaker"
