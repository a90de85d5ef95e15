"""Amounts in normalised texts, brought to one form: `two gigabytes`, `2048 mb` and `2 gb` are the same. Pure."""

import re

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
    " seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = {word: value for value, word in enumerate(_ONES)} | {
    word: 20 + 10 * at for at, word in enumerate(_TENS)
}
_LARGE = {"hundred": 100, "thousand": 1000, "million": 1_000_000, "billion": 1_000_000_000}
_WORD = "|".join([*_SMALL, *_LARGE])
_IN_WORDS = re.compile(
    rf"\b(?:a (?=hundred|thousand|million))?(?:{_WORD})(?:(?:(?<=hundred) and |(?<=thousand) and |[ -])(?:{_WORD}))*\b"
)
_DIGITS = re.compile(r"(?<=\d)[,'](?=\d{3}\b)")

_UNITS: dict[str, tuple[str, float]] = {}
for _dimension, _told in {
    "time": "ms 0.001 milliseconds? 0.001 s 1 secs? 1 seconds? 1 mins? 60 minutes? 60 h 3600 hrs? 3600 hours? 3600"
    " days? 86400 weeks? 604800",
    "month": "months? 1 quarters? 3 years? 12",
    "size": "bytes? 1 kb 1000 kib 1024 kilobytes? 1000 mb 1000000 mib 1048576 megabytes? 1000000 gb 1000000000"
    " gib 1073741824 gigabytes? 1000000000 tb 1000000000000 terabytes? 1000000000000",
    "percent": "percent 1 %% 1",
    "usd": "usd 1 dollars? 1 us-dollars? 1",
    "eur": "eur 1 euros? 1",
    "gbp": "gbp 1 pounds? 1 sterling 1",
    "chf": "chf 1 swiss-francs? 1 francs? 1",
    "metre": "mm 0.001 cm 0.01 metres? 1 meters? 1 km 1000 kilometres? 1000 kilometers? 1000",
    "degree": "degrees? 1 °c 1 ° 1",
    "gram": "mg 0.001 grams? 1 kg 1000 kilograms? 1000",
}.items():
    _words = _told.split()
    for _name, _factor in zip(_words[::2], _words[1::2], strict=True):
        for _form in {_name.replace("?", ""), _name.replace("s?", "")}:
            _UNITS[_form] = (_dimension, float(_factor))

_MONEY = re.compile(
    r"(?P<sign>[$€£])\s?(?P<a>\d[\d.]*)(?P<k>k|m)?\b|\b(?P<name>usd|eur|gbp|chf)\s?(?P<b>\d[\d.]*)(?P<k2>k|m)?\b"
)
_SIGN = {"$": "usd", "€": "eur", "£": "gbp"}
_CLOCK = re.compile(
    r"\b(\d{1,2})(?::(\d{2}))? ?(am|pm|a\.m\.|p\.m\.|o'clock)(?![a-z])|\b(\d{1,2}):(\d{2})\b|\b(noon|midnight)\b"
)
_UNIT = "|".join(sorted((re.escape(name) for name in _UNITS), key=len, reverse=True))
_AMOUNT = re.compile(rf"(?<![\w.#/:@=-])(\d+(?:\.\d+)?)[ -]?({_UNIT})(?![\w/@])")
_PLAIN = re.compile(r"(?<![\w.#/:@=+-])(\d+(?:\.\d+)?)(?![\w/:@+-]|\.\d)")
_COUNTED = re.compile(r"#([a-z]+)=(\d+(?:\.\d+)?(?:e[+-]?\d+)?)")
_JOINED = re.compile(r"(?<![\w.#/:@=+-])(\d+)-(?=[a-z]{3,})")
_HALF = re.compile(r"\bhalf (?:an? )?(year|month|day|hour|minute|megabyte|gigabyte|mb|gb)\b")
_AND_HALF = re.compile(
    rf"\b(?:({'|'.join(_SMALL)}) and a half (hour|minute|day|week|month|year)s?"
    r"|an? (hour|minute|day|week|month|year) and a half)\b"
)
_SINGLE = re.compile(
    r"\b((?:more|less|fewer|longer) than |at (?:most|least) |up to |max(?:imum)?(?: of)? |(?:not )?exceed )"
    r"(?:one|a single)\b(?! (?:hundred|thousand|million|billion|and a half))"
)
_LENGTH = re.compile(r"\b(?:one[ -]|a single )(?=(?:page|line|sentence|paragraph|slide|sheet|screen)\b)")
_ONE_OF = re.compile(
    r"\bone ([a-z-]+(?: (?:an?|per|each|every) (?:day|week|month|year|hour))?) "
    r"(at (?:the )?(?:very )?(?:most|least)|max(?:imum)?|or (?:less|fewer|more))\b"
)
_DAYTIME = re.compile(r"\b(\d{1,2}(?::\d\d)?)(?: o'clock)? (in the (?:morning|afternoon|evening)|at night)\b")
_BELOW_ZERO = re.compile(r"(?<![\w.])(?:minus |-)(?=\d+ ?(?:°|degrees?\b))")
_EVERY_OTHER = re.compile(r"\bevery (?:other|second) (day|week|month|year|hour)\b")
_METRES = re.compile(r"(?<=\d) m(?=$|[ ,;:)]|\.(?:\s|$))")
_NAMED = {
    "three quarters of an hour": "45 minutes",
    "a quarter of an hour": "15 minutes",
    "a quarter-hour": "15 minutes",
    "quarter of an hour": "15 minutes",
    "quarter-hour": "15 minutes",
    "a fortnight": "2 weeks",
    "half a dozen": "6",
    "a dozen": "12",
}
_ONE = re.compile(
    r"\b(than|within|inside|after|least|most) (?:an? |one )(second|minute|hour|day|week|month|year)\b"
)


def counted(text: str) -> str:
    """A normalised text with each amount as one word, `#dimension=value`."""
    text = _DIGITS.sub("", text)
    text = text.replace("swiss franc", "swiss-franc").replace("us dollar", "us-dollar")
    text = _AND_HALF.sub(lambda found: f"{_SMALL[found[1] or 'one']}.5 {found[2] or found[3]}s", text)
    for name, amount in _NAMED.items():
        text = text.replace(name, amount)
    text = _LENGTH.sub("1 ", text)
    text = _SINGLE.sub(lambda found: f"{found[1]}1", text)
    text = _ONE_OF.sub(r"1 \1 \2", text)
    text = _DAYTIME.sub(lambda found: f"{found[1]} {'am' if found[2] == 'in the morning' else 'pm'}", text)
    text = _BELOW_ZERO.sub("negative ", text)
    text = _EVERY_OTHER.sub(r"every 2 \1s", text)
    text = _METRES.sub(" metres", text)
    text = _HALF.sub(lambda found: f"0.5 {found[1]}", text)
    text = _ONE.sub(lambda found: f"{found[1]} 1 {found[2]}", text)
    text = _IN_WORDS.sub(lambda found: _read(found[0]), text)
    text = _MONEY.sub(_money, text)
    text = _CLOCK.sub(_clock, text)
    text = _AMOUNT.sub(lambda found: _put(_UNITS[found[2]][0], float(found[1]) * _UNITS[found[2]][1]), text)
    text = _JOINED.sub(r"\1 ", text)
    return _PLAIN.sub(lambda found: _put("n", float(found[1])), text)


def value_of(word: str) -> tuple[str, float] | None:
    """The dimension and value of a word that `counted` made."""
    found = _COUNTED.fullmatch(word)
    return (found[1], float(found[2])) if found is not None else None


def is_same(one: float, other: float) -> bool:
    """Whether two amounts are the same, a kilobyte being of 1000 or 1024 bytes."""
    return abs(one - other) <= 0.08 * max(abs(one), abs(other)) if max(one, other) > 900 else one == other


def _put(dimension: str, value: float) -> str:
    return f"#{dimension}={value:g}" if value < 1e6 else f"#{dimension}={value:.0f}"


def _read(words: str) -> str:
    if words == "one" or words == "second":
        return words
    total = part = 0
    for word in re.findall(r"[a-z]+", words):
        if word in _SMALL:
            part += _SMALL[word]
        elif word == "hundred":
            part = max(1, part) * 100
        elif word in _LARGE:
            total += max(1, part) * _LARGE[word]
            part = 0
    return str(total + part)


def _money(found: re.Match[str]) -> str:
    factor = {"k": 1000.0, "m": 1e6}.get(found["k"] or found["k2"] or "", 1.0)
    number = (found["a"] or found["b"]).rstrip(".")
    name = _SIGN[found["sign"]] if found["sign"] else found["name"]
    try:
        return _put(name, float(number) * factor)
    except ValueError:
        return found[0]


def _clock(found: re.Match[str]) -> str:
    if found[6]:
        return "#clock=720" if found[6] == "noon" else "#clock=0"
    hour, minute = int(found[1] or found[4]), int(found[2] or found[5] or 0)
    if found[3]:
        hour = hour % 12 + (12 if found[3].startswith("p") else 0) if not found[3].startswith("o") else hour
    return f"#clock={hour * 60 + minute}"
