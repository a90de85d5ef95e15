"""Words that say the same in rules on agents, words that say the opposite, and words that say nothing. Pure data."""

import re
from functools import cache

_ALIKE = """
send dispatch transmit forward deliver
email mail e-mail emails
message notification
delete deletion removal remove erase drop purge wipe destroy
approve approval authorize authorization authorise permission consent sign-off clearance confirm confirmation okay
ask request inquire consult
wait pause hold
change modification modify edit alter update touch rewrite overwrite
share disclose disclosure reveal expose leak publish tell
print display show output
log record
secret credential
key apikey
customer client
production prod live
database db
reply response answer
mention name naming
refer
number digit numeral figure
write spell express compose
english
cite citation reference
source
draft prepare
end finish close conclude terminate
run execution execute launch perform
command shell terminal
push upload
commit
test testing tests
install installation add
package dependency library module
pay payment
transfer wire
refund reimbursement reimburse
buy purchase order
book reserve reservation booking
flight
cost price
person human people somebody someone operator
manager supervisor
two 2 both double
backup snapshot
file document
folder directory dir
internet network web online
quote quotation
lowercase lower-case
uppercase upper-case capital capitals capitalize capitalise
metric
imperial
measure measurement unit
restart reboot
migrate migration
round rounding rounded
decimal
address recipient addressee
company organization organisation corporate firm
store keep retain hold save
personal private
diagnosis
access open enter
transaction
budget
branch
deploy deployment release rollout ship
review inspect check
explain explanation justify
translate translation
sentence phrase
exact verbatim literal
bullet list
summary summarize summarise
code
comment
table
language
read
create make
call invoke
tool function
plan
action step activity operation
"""
"""A line for each idea; the first word names it."""

_OPPOSITE = (
    ("outside", "inside"),
    ("external", "internal"),
    ("lowercase", "uppercase"),
    ("more", "most"),
    ("include", "exclude"),
    ("enable", "disable"),
    ("stay", "logout"),
)

_GENERIC = frozenset(
    "use give provide take include contain reply send address user agent assistant thing make create set"
    " apply keep store time"
    " exact person get have show print measure write every".split()
)
"""Ideas that many sentences share: they count for less."""

_PHRASES = tuple(
    (re.compile(pattern), put)
    for pattern, put in (
        (r"\be-?mails?\b", "email"),
        (r"\bkeep (.{1,80}?) out of\b", r"never include \1 in"),
        (r"\blog(ged|ging)? out\b|\bsign(ed|ing)? out\b", "logout"),
        (r"\bstay logged in\b|\bremain logged in\b", "stay"),
        (r"\bprefer(s|red)? ([^.;]{1,60}?) over\b(?! \d)", r"prefer \2 rather than"),
        (r"(?<![\w./])([a-z]{3,})/([a-z]{3,})(?![\w./])", r"\1 or \2"),
        (
            (
                r"\b(no|not) more than\b|\bor (fewer|less)\b|\bmax\b|\bat most\b|\bup to\b|\bmaximum( of)?\b"
                r"|\bunder\b|\bbelow\b|\bless than\b"
            ),
            " most ",
        ),
        (
            (
                r"\b(more|higher|greater) than\b|\babove\b|\b(over|longer than|higher than)\b(?! the)"
                r"|\bexceed(s|ing|ed)?\b|\bbeyond\b"
            ),
            " more ",
        ),
        (
            r"\b(who|that|which) (is|are) not (at|in|of|part of|from|with|employed by) (our|the|your) (\w+)",
            r"outside \5",
        ),
        (
            r"\bnot (at|in|part of|belonging to) (our|the|your) (company|organi[sz]ation|firm)\b",
            r"outside \3",
        ),
        (r"\b(outside|out)( of)?\b", " outside "),
        (r"\b(inside|within)( of)?\b", " inside "),
        (r"\bleaves?\b|\bleaving\b", " outside "),
        (r"\bnon-(company|employee)", r"outside \1"),
        (r"\bthird[- ]part(y|ies)\b", "external"),
        (r"\bapi[- ]keys?\b", "apikey"),
        (r"\bcapital letters?\b", "uppercase"),
        (r"\blower[- ]?case( letters?)?\b", "lowercase"),
        (r"\bupper[- ]?case( letters?)?\b", "uppercase"),
        (r"\bgo[- ]ahead\b", "confirmation"),
        (r"\bfirst[- ]hand\b|\boriginal sources?\b", "primary source"),
        (r"\bprior to\b|\bahead of\b", "before"),
        (r"\bpull requests?\b|\bprs?\b", "pull-request"),
        (r"\bsign(ed)?[- ]off\b", "approval"),
        (r"\bnumbers? of\b", "count"),
        (r"\btest suite\b|\btest suites\b", "test"),
    )
)
"""Turns of phrase, and one word in their place; applied in order."""

_FUNCTION = frozenset(
    "a an the this that these those it its is are was were be been being am do does did done doing has"
    " have had having"
    " of to in on at by for with from into onto as and or nor but if then than so such too very also just even still"
    " i you he she we they me him her us them my your his our their mine yours yourself myself ourselves themselves"
    " who whom whose which what when where why how there here any some each all both either neither none nothing"
    " anything everything anyone anybody everyone nobody one ones other another own same not no never must"
    " should shall"
    " may might can cannot could will would need needs needed require requires required always only ever please"
    " whatsoever under circumstances before after until unless without while during about around per via"
    " through between"
    " up down out off again further even once said says told tells stated states specified more most let"
    " lets want wants wanted like prefer prefers"
    " instead rather except ensure sure avoid refrain stop strictly explicitly explicit directly myself"
    " constraint constraints rule rules policy policies preference preferences instruction instructions requirement"
    " requirements requested requesting agent assistant user user's users s future subsequent forbidden prohibited"
    " allowed permitted fine ok okay optional mandatory first prefers enforcing enforced behalf case cases going"
    " given certain possible convenient practical actually existing available back out every generally"
    " usually ideally"
    " anymore longer get gets getting got gotten go goes went".split()
) - {"more", "most", "outside", "inside", "person", "use"}
"""Words that no rule is told by."""

_IRREGULAR = {
    "sent": "send", "ran": "run", "written": "write", "wrote": "write", "gave": "give", "given": "give",
    "kept": "keep", "shown": "show", "shared": "share", "took": "take", "taken": "take", "made": "make",
    "told": "tell", "paid": "pay", "bought": "buy", "spent": "spend", "held": "hold", "left": "leave",
    "diagnoses": "diagnosis", "replies": "reply", "quoting": "quote", "taking": "take", "making": "make",
    "using": "use", "used": "use", "written-down": "write", "citing": "cite", "cited": "cite", "sharing": "share",
    "deleting": "delete", "deleted": "delete", "moved": "move", "stored": "store", "storing": "store",
    "news": "news", "emojis": "emoji", "access": "access", "address": "address", "addresses": "address",
    "business": "business",
    "addressed": "address", "addressing": "address", "accessing": "access", "naming": "name", "named": "name",
    "wrong": "wrong", "process": "process", "always": "always", "data": "data", "closing": "close", "closed": "close",
    "children": "child", "people": "person", "sentences": "sentence", "changing": "change", "changed": "change",
    "merging": "merge", "merged": "merge", "writing": "write", "messages": "message", "sources": "source",
    "approvals": "approval", "approved": "approve", "approving": "approve", "approves": "approve",
    "purging": "purge", "writes": "write", "releases": "release", "images": "image", "files": "file",
    "responses": "response", "databases": "database", "sized": "size", "invoices": "invoice", "prices": "price",
}  # fmt: skip

_NUMBERS = {
    word: str(number)
    for number, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
        " seventeen eighteen nineteen twenty".split()
    )
    if word != "one"
} | {"thirty": "30", "forty": "40", "fifty": "50", "hundred": "100", "thousand": "1000"}

_VERBS = frozenset(
    "accept access add address allow answer append apply ask assume attach attempt begin block book bring buy call"
    " change check choose cite clean close commit compile complete confirm connect consult contact convert"
    " copy create"
    " cut declare delete deliver deploy describe disable disclose display download draft edit email embed"
    " enable encrypt end escalate exclude execute explain export fetch finish follow format forward generate get"
    " give handle have hide hold ignore import include inform inspect install keep label leave limit link"
    " list load log"
    " logout make mark measure mention merge migrate mock modify move notify obtain offer omit open output pass"
    " pause pay pin post prefer prefix prepare preserve print produce propose provide publish pull push"
    " put quote read record redact refer refuse reject release remove rename render reply report request require"
    " reserve resolve respond restart restrict retain return reveal review rotate round route run save say schedule"
    " seek send set share show sign skip sort spell split start stay stick stop store submit summarize suffix"
    " support take tell test touch transfer translate treat update upload use validate verify wait wrap"
    " write".split()
)
"""Verbs that an order may begin with."""


@cache
def stem(word: str) -> str:
    """A word without its ending."""
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word in _NUMBERS:
        return _NUMBERS[word]
    if not word.isalpha():
        return word.removesuffix("'s")
    for ending, put in (
        ("ies", "y"),
        ("ying", "y"),
        ("sses", "ss"),
        ("ing", ""),
        ("ed", ""),
        ("es", ""),
        ("s", ""),
    ):
        root = word.removesuffix(ending)
        if root == word or len(root) < 3 or (ending == "s" and word.endswith(("ss", "us", "is"))):
            continue
        root += put
        if ending in ("ing", "ed") and len(root) > 3 and root[-1] == root[-2] and root[-1] not in "lsz":
            root = root[:-1]
        if ending == "es" and not root.endswith(("s", "x", "z", "ch", "sh")):
            root += "e"
        if ending in ("ing", "ed") and f"{root}e" in _VERBS:
            root += "e"
        return root
    return word


@cache
def _ideas() -> dict[str, str]:
    found: dict[str, str] = {}
    for line in _ALIKE.split("\n"):
        words = line.split()
        for word in words:
            found.setdefault(stem(word), words[0])
    return found


@cache
def idea(word: str) -> str:
    """What a word stands for."""
    root = stem(word)
    return _ideas().get(root, root)


OPPOSITE: dict[str, str] = {
    **dict(_OPPOSITE),
    **{other: one for one, other in _OPPOSITE},
}
"""An idea -> the one that says the opposite."""


def weight(of: str) -> float:
    """How much an idea says."""
    return 0.35 if of in _GENERIC else 1.0


def is_function(word: str) -> bool:
    """Whether a word only holds a sentence together."""
    return word in _FUNCTION


def is_verb(word: str) -> bool:
    """Whether a sentence that begins with it gives an order."""
    return word in _VERBS


def rephrased(text: str) -> str:
    """A normalised text with one word for each turn of phrase."""
    for pattern, put in _PHRASES:
        text = pattern.sub(put, text)
    return text
