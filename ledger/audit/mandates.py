"""Wrappers that instructions demand: `deploy only through bin/ship`, `never call kubectl yourself, use guard run`."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ledger.audit.controls import TABLES, pattern
from ledger.audit.naming import SENTENCE, Named, names_in

_FLAGS = re.IGNORECASE


class Mandate(NamedTuple):
    """A wrapper that instructions demand."""

    wrapper: str
    """What has to be called."""

    programs: tuple[str, ...]
    """What has to go through it, such as `git push`; empty: every command."""

    is_for_changes: bool = False
    """Whether it is demanded for what changes something alone."""


_MUST = re.compile(
    r"\b(must|mustn't|always|never|only|exclusively|solely|wrap(ped)?|prefix|route|run (?:all|every)"
    r"|shall|required?|mandatory|do not"
    r"|don't|doesn't|may not|cannot|can't|not allowed|not permitted|not OK|has to|have to|need to"
    r"|needs to|forbidden|prohibited|banned"
    r"|blocked|off limits|off-limits|instead of|rather than|in place of|not to be|nothing else"
    r"|no other|every|all|are to|is to|use|goes?"
    r" through|refuse|avoid)\b",
    _FLAGS,
)
_PLAIN = re.compile(r"(?<![\w`/.@:-])([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?![\w`/:-]|\.\w)")
_GUARDED = re.compile(
    r"\b(guard\w*|safe\w*|wrapper|wrapped|audit\w*|polic\w+|sandbox\w*|monitor\w*|gate(way|keeper|d)?"
    r"|proxy|secure\w*|security"
    r"|log(s|ged|ging)?|record\w*|approv\w+|firewall|jail\w*|supervis\w+|restrict\w*|check(s|ed|er)?"
    r"|compliance|mandatory|bypass\w*"
    r"|control\w*|broker\w*|ask(s)?|lock|snapshot|sign(s|ed)?)\b|guard|safe|wrap|audit|gated",
    _FLAGS,
)
_BEFORE_WRAPPER = re.compile(
    r"\b(through|via|with|using|uses?(?! of)|by|by calling|by running|inside|under|to|call|calls"
    r"|calling|run|invoke|as|→|->|=>|is|are|go through)"
    r"\s+(?:only\s+|always\s+|exclusively\s+)?(?:(?:the|our|a|an)\s+)?(?:[\w-]+\s+){0,2}?"
    r"(?:(?:wrapper|script|command|tool|target)\s+)?$|[:→>]\s*$|^\W*$|[.!?]\s+$|\bonly\s+$|\b(wrapper|tool"
    r"|script|command)\s*[,:]?\s*$|\bwrap\b[^.]*\bin\s+$|\b(use|run|call"
    r"|go through)\s+(?:\w+\s+)?(?:either\s+)?$",
    _FLAGS,
)
_AFTER_WRAPPER = re.compile(
    r"^\s*(?:(?:<[^>]*>|\([^)]*\)|wrapper|script|tool|command)\s*)?,?\s*(wraps\b"
    r"|is (the )?(one and )?(only|mandatory|required|compulsory)|must be used|has to be used"
    r"|and nothing else|does (it|this|that)|instead\b|only\b|(is|are) (the )?(sole|one)\b|takes care)",
    _FLAGS,
)
_NEGATED = re.compile(
    r"\b(never|not|don't|doesn't|cannot|can't|mustn't|shouldn't|won't|no|instead of|in place of"
    r"|rather than|without|forbidden"
    r"|prohibited|avoid)\b",
    _FLAGS,
)
_BANNED = re.compile(
    r"\b(?:is|are|'s)\b(?:[^.;,]{0,40}?\s)?(?:forbidden|not\s+(?:allowed|permitted|OK|supported|to be"
    r"|an option|used|acceptable)|prohibited"
    r"|banned|against the (?:rules|policy)|off[- ]limits|blocked|disabled|disallowed|a violation"
    r"|disabled for you|reserved)\b|\bmust\s+(?:not|never)\s+be\b|\b(?:must|to|has to"
    r"|is)\s+(?:be\s+)?replaced\b|\bmay\s+not\s+be\b"
    r"|\bshould\s+never\s+be\b|\bare\s+never\s+(?:used|called|run)\b|\bby itself\b|\bcan(?:not"
    r"|'t)\s+be\s+(?:used|called|run)\b"
    r"|\bviolates?\b|\bbreach\b|\boffen[cs]e\b|\bviolation\b|\b(?:is|are) (?:only )?for (?:humans|people)\b"
    r"|\bnot for you\b|\b(?:bypass(?:es)?|skips?|circumvents?|goes around|evades?)\b",
    _FLAGS,
)
_REQUIRED = re.compile(
    r"\b(must|has to|have to|shall|only|always|never|exclusively|solely|mandatory|required|all|every"
    r"|any|each|goes|go|needs? to|are to"
    r"|is to|leaves?)\b.*\b(through|via|with|using|by|as|use|via)\b|\b(use|go through|call|prefix(ed)?|wrap(ped)?"
    r"|routed?)\b|\bthe only\b|\bnothing (else|but)\b|\b(mandatory|compulsory)\b|→|=>|->",
    _FLAGS,
)
_CLAUSE = re.compile(
    r"[;:,.()\u2014\u2013]|\s-\s|\bbut\b|\band(?= (?:never|always|use|go|call|run|do|must|not|nothing)\b)|\bso\b"
    r"|\bwhich\b|\bsince\b|\bbecause\b"
    r"|→|=>",
    _FLAGS,
)
_EXCHANGES = frozenset({"instead of", "in place of", "rather than", "without"})
_IN_ORDER = re.compile(r"^\s*(before|after|first|and then|then)\b", _FLAGS)
_STRICT = re.compile(r"\b(only|must|has to|always|every|all|any)\b[^.]*\b(through|via)\b", _FLAGS)
_READERS = frozenset("cat head tail ls find grep rg less more sed awk echo wc tree fd bat".split())
_OF_HARNESS = re.compile(
    r"apply_patch|str_replace\w*|(read|write|edit|create|list|search|view)_(files?|dir|directory|text)\w*",
    _FLAGS,
)
_COLON = re.compile(r"\b(never|not|don't|forbidden|prohibited|banned|no)\s*:\*{0,2}(?=\s)", _FLAGS)
_BY_ONESELF = re.compile(r"\b(direct(ly)?|your own|yourself|by hand|manual(ly)?)\b", _FLAGS)
_LISTED = re.compile(r"\s*(,|or|and|nor|/|,\s*(?:or|and|nor))\s*(?:the\s+|plain\s+)?$", _FLAGS)
_CHANGES = re.compile(
    r"\b(chang\w*|modif\w*|writ(e|es|ing)|mutat\w*|updates?|apply|applies|appl(y"
    r"|ied))\b[^.]{0,25}(something|anything|state|data|infra\w*"
    r"|it\b|the cluster|the database)|\bevery change\b|\ball (changes|writes)\b|\bthat changes?\b"
    r"|\bfor writ(es|ing)\b",
    _FLAGS,
)
_EVERY = re.compile(
    r"\b(all|every|any|each)\b[^.]{0,30}\b(commands?|shell|bash|terminal|executions?|programs?)\b"
    r"|\b(shell|bash|terminal) commands?\b[^.]{0,20}\b(prefix|through|via|with|each)\b",
    _FLAGS,
)
_COMMANDS = re.compile(r"\b(shell |bash |terminal )?commands?\b", _FLAGS)
_SOME_COMMANDS = re.compile(
    r"\bcommands?\s+(?:that|which|against|touching|involving|affecting|for|on(?! (this|the) (host"
    r"|machine|box|server|system)))\b",
    _FLAGS,
)
_VERB_OF_GIT = re.compile(
    r"\b(?:for|git)\s+(?:every|all|each|any)?\s*(push|commit|merge|rebase)(?:e?s|ing)?\b", _FLAGS
)
_GIT_VERB = re.compile(r"\bgit[ -](push|commit|merge|rebase|tag|reset)(?:e?s|ing)?\b", _FLAGS)
_OPERATIONS = re.compile(
    r"\b(?:all|every|any|each)\s+([A-Za-z][\w.-]+)\s+"
    r"(?:operations?|commands?|calls?|invocations?|access|usage|requests?|runs?)\b"
    r"|^\W*([A-Za-z][\w.-]+)\s+(?:may|must|shall|can)\s+only\b"
    r"|\bfor\s+(?:all|every)\s+([A-Za-z][\w.-]+)\s+(?:work|commands?|operations?)\b",
    _FLAGS,
)
_CALLED = re.compile(
    r"\b(?:never|not|don't|mustn't|avoid)\s+(?:ever\s+|be\s+|to\s+be\s+|directly\s+)?(?:call|run|use"
    r"|invoke|execute|calling|running|using|open|touch)\s+"
    r"(?:the\s+|plain\s+)?([a-z][\w.-]*)(?:\s+(?:or|and|nor)\s+([a-z][\w.-]*))?",
    _FLAGS,
)
_INSTEAD = re.compile(
    r"\b(?:instead of|in place of|rather than)\s+(?:plain\s+|bare\s+|raw\s+|calling\s+)?([a-z][\w.-]*)\b",
    _FLAGS,
)
_OTHER_TOOLS = frozenset(
    "pnpm npm npx yarn bun bunx uv uvx pip pip3 pipx poetry pdm hatch conda rg fd bat eza podman "
    "docker python python3 pytest"
    " ruff black isort mypy eslint biome prettier deno cargo go gh git tsx vitest jest nox tox node "
    "tsc vite".split()
)
"""Tools that people prefer to others; none of them wraps the other."""
_LAUNCHED = re.compile(r"^(npm|pnpm|yarn|bun|uv|poetry|deno) (run|task) |^(make|just|task|rake|nox) ", _FLAGS)
_GENERAL = frozenset(
    "shell bash terminal of the other external system tool such cli console command-line your command "
    "commands it they them this"
    " that these those everything all anything calls requests operations and or use file files change "
    "changes data code project"
    " every everyone each directly yourself hand only plain user users production staging main is are "
    "be to in on at for".split()
)
_SOURCE = re.compile(r"\.(ts|tsx|jsx|go|rs|java|kt|c|h|cpp|cs|vue|md|txt|json|ya?ml|toml|css|html)$", _FLAGS)
_PROGRAMS = frozenset(TABLES["mandates"]["programs"].split())
_CLASSES = tuple((pattern(one["words"]), tuple(one["programs"])) for one in TABLES["mandates"]["classes"])
_OF_CLASSES = frozenset(one for _, programs in _CLASSES for one in programs)
_PLACEHOLDER = re.compile(
    r"\s*(\s[\w-]+(\|[\w-]+)+|<[^>]*>?|\[[^\]]*\]?|\.{2,3}|…|\{[^}]*\}?|\s[A-Z]{2,}\b|\bNAME\b|\bCMD\b|\bCOMMAND\b|\$\w+|--\s*$).*$"
)
_LONGEST_SENTENCE = 1000
_MOST_NAMES = 40


def mandates_in(line: str) -> list[Mandate]:
    """The wrappers that a line of instructions demands: sentence by sentence, and by two that belong together."""
    line = _COLON.sub(r"\1 ", line)
    sentences = [one for one in SENTENCE.split(line) if len(one) <= _LONGEST_SENTENCE]
    found: list[Mandate] = []
    is_taken = [False] * len(sentences)
    for place, sentence in enumerate(sentences):
        if (mandate := _mandate(sentence)) is not None:
            found.append(mandate)
            is_taken[place] = bool(mandate.programs)
    for place, (one, other) in enumerate(pairwise(sentences)):
        if is_taken[place] and is_taken[place + 1]:
            continue
        if _bans(one) == _bans(other) or _is_settled(one if _bans(one) else other):
            continue
        if (joint := _mandate(f"{one} {other}", whole=True)) is not None:
            wrappers = [mandate for mandate in found if mandate.wrapper == joint.wrapper]
            found = [mandate for mandate in found if mandate not in wrappers]
            named = (one for old in wrappers for one in old.programs if one not in _OF_CLASSES)
            programs = dict.fromkeys([*named, *joint.programs])
            is_for_changes = joint.is_for_changes and all(one.is_for_changes for one in wrappers)
            found.append(Mandate(joint.wrapper, tuple(programs), is_for_changes))
    return found


def _bans(sentence: str) -> bool:
    return _NEGATED.search(sentence) is not None or _BANNED.search(sentence) is not None


def _is_settled(sentence: str) -> bool:
    """Whether a sentence that forbids something says itself what to use: another's wrapper is not for that."""
    names = [named for named in names_in(sentence) if not _is_refused(sentence, named)]
    return any(_is_wrapper(sentence, named) and named.is_quoted for named in names)


def _mandate(sentence: str, *, whole: bool = False) -> Mandate | None:
    """What a sentence demands; `whole`: it is two, of which one may demand and the other forbid."""
    if not _MUST.search(sentence) and not _bans(sentence):
        return None
    wrapper: Named | None = None
    refused: list[str] = []
    candidates: list[Named] = []
    others: list[str] = []
    for named in sorted(_all_names(sentence))[:_MOST_NAMES]:
        if _is_refused(sentence, named):
            refused.append(named.name)
        elif wrapper is None and _is_wrapper(sentence, named) and _may_wrap(_command(named.name)):
            wrapper = named
        elif named.is_quoted or named.name in _PROGRAMS or "/" in named.name:
            others.append(named.name)
            candidates.append(named)
    if wrapper is None and refused:
        wrapper = next((named for named in candidates if _stands_alone(named)), None)
    if wrapper is None:
        return None
    name = _command(wrapper.name)
    refused = [one for one in _commands(refused, name) if one not in _GENERAL or one in _PROGRAMS]
    is_guarded = bool(_GUARDED.search(sentence))
    order = _IN_ORDER.match(sentence[wrapper.end :])
    if order is not None and (not refused or (whole and order[1].lower() == "before")):
        return None  # "use X before Y"
    if not refused and not _REQUIRED.search(sentence):
        return None
    is_strict = _STRICT.search(sentence) is not None
    if not is_guarded and not (
        refused or whole or is_strict or re.search(r"[/_-]|^(make|just|npm run|task) ", name)
    ):
        return None
    programs = refused or [] if whole else [*refused, *(_commands(others, name) if not refused else [])]
    if whole and not refused and not (_BY_ONESELF.search(sentence) and _bans(sentence)):
        return None
    programs = programs or _bare_programs(sentence, name)
    if programs == ["git"] and (verb := _VERB_OF_GIT.search(sentence)) is not None:
        programs = [f"git {verb[1].lower()}"]
    if not programs:
        is_for_all = bool(_EVERY.search(sentence) or _COMMANDS.search(sentence)) and is_guarded
        if not is_for_all or _SOME_COMMANDS.search(sentence) or wrapper.name == wrapper.name.title():
            return None
    return Mandate(name, tuple(dict.fromkeys(programs)), _CHANGES.search(sentence) is not None)


def _command(name: str) -> str:
    """A name without what stands for a command of any kind: `rec -- CMD` is `rec`."""
    return _PLACEHOLDER.sub("", name.partition(" -- ")[0]).strip()


def _all_names(sentence: str) -> Iterator[Named]:
    """Names set off, and plain words that are programs or stand where a wrapper stands."""
    taken = []
    for named in names_in(sentence):
        taken.append((named.place, named.end))
        yield named
    for found in _PLAIN.finditer(sentence):
        if any(start <= found.start() < end for start, end in taken):
            continue
        word = found[1]
        if (
            re.match(r"\s+(commands?|scripts?|lines?)\b", sentence[found.end() :], _FLAGS)
            and word in _GENERAL
        ):
            continue  # "bash commands" are commands of any kind
        is_there = re.search(
            r"\b(through|via|exclusively with|only with|by|call|use|using|is)\s+(?:the\s+)?$",
            sentence[: found.start()],
            _FLAGS,
        )
        is_name = "-" in word or "_" in word or (is_there and is_there[1].lower() in ("through", "via"))
        if word in _PROGRAMS or (is_there and is_name and word not in _GENERAL):
            verb = _GIT_VERB.match(sentence, found.start()) if word == "git" else None
            name = f"git {verb[1].lower()}" if verb else word
            yield Named(found.start(), name, verb.end() if verb else found.end(), False)


def _is_refused(sentence: str, named: Named) -> bool:
    """Whether a sentence says not to call a name: before it in its clause, after it, or in a list of such."""
    before, after = sentence[: named.place], sentence[named.end :]
    clauses = _CLAUSE.split(before)
    clause = clauses[-1]
    while not clause.strip() and len(clauses) > 1 and _LISTED.search(before):  # "curl, wget or nc"
        clauses.pop()
        clause = clauses[-1]
    cues = list(_NEGATED.finditer(clause))
    if cues and not re.search(r"\bnot only\b", clause, _FLAGS):
        gap = clause[cues[-1].end() :]
        is_instead = cues[-1][0].lower() in _EXCHANGES
        if not re.search(
            r"\b(through|via|using)\b" + (r"|\b(use|call)\b" if is_instead else ""), gap, _FLAGS
        ):
            return True
        if re.search(r"\b(not|never)\s+(through|via|using|with)\b", clause, _FLAGS):
            return True
    upto = re.split(r"[;:\u2014\u2013]|\.\s|\.$|,\s(?:use|go|call|run|which|so)\b|\buse\b", after)[0]
    return _BANNED.search(upto) is not None and not _AFTER_WRAPPER.match(after)


def _is_wrapper(sentence: str, named: Named) -> bool:
    before, after = sentence[: named.place], sentence[named.end :]
    if not named.is_quoted and named.name in _PROGRAMS:
        return False
    return _AFTER_WRAPPER.match(after) is not None or _BEFORE_WRAPPER.search(before[-80:]) is not None


def _stands_alone(named: Named) -> bool:
    """Whether a name beside others that are refused can only be what to use instead."""
    name = _command(named.name)
    is_set_off = named.is_quoted or "/" in name
    return is_set_off and _may_wrap(name) and re.search(r"[a-z]{3}", name) is not None


def _may_wrap(name: str) -> bool:
    """Whether a name is one of a command that can stand before others, and not of code or of one of two like tools."""
    first = name.split()[0] if name.split() else ""
    is_command = bool(re.fullmatch(r"[\w./~-][\w./~ :=-]{0,60}", name)) and not name.endswith((".md", ".txt"))
    if (first.isalpha() and first[:1].isupper()) or _OF_HARNESS.fullmatch(first):
        return False  # a tool of a harness that reads better than a program does
    if not is_command or first.rpartition("/")[2].lower() in _GENERAL or first[:1].isdigit():
        return False
    if _LAUNCHED.search(name):
        return True
    if first in _OTHER_TOOLS or first in _PROGRAMS:
        return False
    is_source = (
        _SOURCE.search(first) is not None and re.match(r"(\./)?(scripts?|bin|tools?|ops)/", first) is None
    )
    is_code = re.fullmatch(r"[a-z]+[A-Z]\w*|[\w]+\.[a-z]\w*", first) is not None and not re.search(
        r"\.(sh|py|rb|js|pl|bash|exe|ps1)$", first
    )
    return not is_source and not is_code


def _commands(names: list[str], wrapper: str) -> list[str]:
    plain = (_PLACEHOLDER.sub("", name).strip() for name in names)
    return [
        name
        for name in plain
        if re.fullmatch(r"[\w./~-][\w./~ :=-]{0,60}", name)
        and not name.endswith((".md", ".txt"))
        and name != wrapper
        and name not in _READERS
        and not re.search(r"\(|\)", name)
    ]


def _bare_programs(sentence: str, wrapper: str) -> list[str]:
    """Programs that stand in a sentence without quotes: "all git operations", "git pushes", "call psql directly"."""
    if verbs := _GIT_VERB.findall(sentence):
        return list(dict.fromkeys(f"git {verb.lower()}" for verb in verbs))
    names = [name for both in _OPERATIONS.findall(sentence) for name in both if name]
    names += [name for both in _CALLED.findall(sentence) for name in both if name]
    names += _INSTEAD.findall(sentence)
    first = wrapper.split()[0].rpartition("/")[2].lower()
    found = [name.lower().rstrip(".") for name in dict.fromkeys(names) if name.lower() not in _GENERAL]
    found = [name for name in found if name != first and name not in _READERS]
    if _EVERY.search(sentence):
        return found
    return found or [
        program for words, programs in _CLASSES if words.search(sentence) for program in programs
    ]
