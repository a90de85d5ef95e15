"""What controls an agent: files by their paths, processes by their names, and what instructions protect."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Control = Literal["control", "permissions", "instructions"]
"""`control`: hooks, guards, audit logs; `permissions`: what may be done unasked; `instructions`: what it is told."""

_FLAGS = re.IGNORECASE
_PATTERNS: tuple[tuple[Control, re.Pattern[str]], ...] = (
    (
        "control",
        re.compile(
            r"(^|/)\.(claude|codex|gemini|cursor|opencode|pi|agents?|kiro|qwen|windsurf)/hooks(/|$)"
            r"|(^|/)\.(claude|codex|cursor|gemini)/hooks\.json$"
            r"|(^|/)\.git/hooks(/|$)"
            r"|(^|/)\.loopledger(/(?!queries/|detectors/)|$)"
            r"|(^|/)\.claude/(projects/.*\.jsonl|history\.jsonl)$"
            r"|(^|/)\.codex/(sessions/.*\.jsonl|history\.jsonl|log/.*)$"
            r"|^/var/log(/?$|/([^/]*(audit|auth|secure|syslog|messages|journal|agent|claude|codex|guard)|[wbu]tmp|lastlog))"
            r"|^/etc/(audit|sudoers|pam\.d|apparmor|selinux|falco|osquery)(\.d)?(/|$)"
            r"|(^|/)[^/]*\baudit[^/]*\.(log|jsonl|ndjson|db|sqlite3?)(\.\d+|\.gz)?$"
            r"|(^|/)audit(-|_)?(logs?|trail)/[^/]+\.(log|jsonl|ndjson|json|csv)$",
            _FLAGS,
        ),
    ),
    (
        "permissions",
        re.compile(
            r"(^|/)\.claude/settings(\.local)?\.json$|(^|/)\.claude\.json$|(^|/)managed-settings(\.d/.*)?\.json$"
            r"|(^|/)\.codex/(config|requirements|managed_config)\.toml$|(^|/)\.codex/rules/"
            r"|(^|/)\.gemini/(settings\.json|policies/.*)$"
            r"|(^|/)\.cursor/(cli|cli-config|permissions|sandbox|settings)\.json$"
            r"|(^|/)\.?opencode(/config)?\.jsonc?$|(^|/)\.opencode/opencode\.jsonc?$"
            r"|(^|/)\.(pi|qwen|kiro|factory|amp|cline|roo|continue|agents?)/"
            r"(settings|permissions?|config|policy|policies|allowlist)[^/]*\.(json|ya?ml|toml)$"
            r"|(^|/)(agent|tool|approval|sandbox)[-_.]?(permissions?|policy|policies|allowlist)\.(json|ya?ml|toml|rego)$"
            r"|(^|/)polic(y|ies)/([^/]*[-_.])?(agents?|tools?|llm|mcp)[^/]*\.(rego|cedar|ya?ml|json|toml)$"
            r"|(^|/)\.mcp\.json$|(^|/)\.(cursor|vscode|roo|kiro|windsurf|amazonq|junie|gemini)/(settings/)?mcp(_config)?\.json$"
            r"|(^|/)(claude_desktop_config|cline_mcp_settings|mcp_settings)\.json$",
            _FLAGS,
        ),
    ),
    (
        "instructions",
        re.compile(
            r"(^|/)(AGENTS|CLAUDE|GEMINI|QWEN|AGENT)(\.local|\.override)?\.md$"
            r"|(^|/)\.(cursorrules|windsurfrules|clinerules|goosehints|aider\.conf\.yml)$"
            r"|(^|/)\.(clinerules|windsurf/rules|cursor/rules|roo/rules[^/]*|kiro/steering|amazonq/rules)(/|$)"
            r"|(^|/)\.github/(copilot-instructions\.md|instructions/.*)$"
            r"|(^|/)\.(claude|codex|opencode|agents?|gemini)/(agents|commands|skills|output-styles|prompts|rules|memory)(/|$)"
            r"|(^|/)\.claude/projects/.*/memory/|(^|/)SOUL\.md$|(^|/)\.letta/",
            _FLAGS,
        ),
    ),
)
_NOT_LIVE = re.compile(
    r"(^|/)(tests?|__tests__|fixtures?|testdata|test_data|examples?|samples?|templates?|docs?|snapshots?|node_modules)/",
    _FLAGS,
)

GUARDS = re.compile(
    r"(^|[^a-z])(guards?|guardian|guardrails?|watchdog|monitors?|sentinel|sentry-agent|audit(d|or|beat|-agent)?"
    r"|falco|osqueryd?|sysmon|gatekeeper|kyverno|wazuh|tetragon|dlp|edr|crowdstrike|loopledger|policyd?|enforcer|supervisor|firewalld?|sandboxd?|tripwire|apparmor"
    r"|rsyslogd?|syslogd?|journald|(egress|ingress|network|traffic|content|prompt|output)[-_]?(filter|proxy|gateway|policy)"
    r"|(agent|tool|session|llm|ai|claude|codex)[-_]?(mon|monitor|watch|watcher|guard|audit|tracer?|logger|logd|gate|proxy)"
    r")([^a-z]|$)",
    _FLAGS,
)
"""Names of processes that watch over others."""


OF_REPOSITORY = re.compile(r"(^|/)\.husky/|(^|/)\.pre-commit-config\.ya?ml$|(^|/)\.?lefthook\.ya?ml$", _FLAGS)
"""Hooks that a repository carries: work on it may well change them, but not take them away."""


def control_of(path: str) -> Control | None:
    """What a file controls by its path; None: nothing that is known. Fixtures and examples control nothing."""
    path = path[:_LONGEST_SENTENCE]
    if _NOT_LIVE.search(path) and not path.startswith(("/etc/", "/var/log")):
        return None
    return next((control for control, pattern in _PATTERNS if pattern.search(path)), None)


class Mandate(NamedTuple):
    """A wrapper that instructions demand."""

    wrapper: str
    """What has to be called."""

    programs: tuple[str, ...]
    """What has to go through it, such as `git push`; empty: every command."""


class Told(NamedTuple):
    """What a text puts under protection."""

    protected: tuple[str, ...]
    """Paths and names that it says not to touch."""

    mandates: tuple[Mandate, ...]
    """Wrappers that it demands."""


_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_MUST = re.compile(
    r"\b(must|always|never|only|wrap|prefix|route|run (?:all|every)|shall|required?|mandatory|do not|don't|may not"
    r"|not allowed|has to|have to|forbidden|instead of|rather than)\b",
    _FLAGS,
)
_FORBIDS = re.compile(
    r"\b(never|do not|don't|must not|may not|not allowed to|shall not|forbidden to|without (approval|permission))"
    r"\b[^.]*?\b(modify|edit|change|alter|disable|delete|remove|touch|bypass|kill|stop|terminate|overwrite|tamper|unload"
    r"|truncate|rotate|rewrite|turn off)\w*",
    _FLAGS,
)
_CONTROLS = re.compile(
    r"guard|hook|monitor|watchdog|audit|sandbox|wrapper|polic(y|ies)|permission|enforce|safety|security|compliance|ledger"
    r"|kill.?switch|approval|logg(er|ing)",
    _FLAGS,
)
_PROCESS = re.compile(r"\b(process(es)?|services?|daemons?|containers?)\b", _FLAGS)
_QUOTED = re.compile(r"(?:[`\"“]|(?<!\w)')([^`\"'”\n]{1,80})[`\"'”]")
_BARE = re.compile(
    r"(?<![\w`])((?<=\bthe )\w+-[\w-]+(?= wrapper\b)"
    r"|(?:~|\.{1,2})?/?[\w.-]+(?:/[\w.*-]+)+|[\w-]+\.(?:sh|py|js|ts|rb|json|ya?ml|toml|log|jsonl|service))(?![\w])"
)
_GUARDED = re.compile(
    r"\b(guard\w*|safe\w*|wrapper|wrapped|audit\w*|polic\w+|sandbox\w*|monitor\w*|gate(way|keeper|d)?|proxy|secure\w*|security"
    r"|log(ged|ging)?|record\w*|approv\w+|firewall|jail\w*|supervis\w+|restrict\w*|check(ed|er)?|compliance|mandatory|bypass\w*"
    r"|control\w*|broker\w*)\b|guard|safe|wrap|audit|gated",
    _FLAGS,
)
_BEFORE_WRAPPER = re.compile(
    r"\b(through|via|with|using|uses?(?! of)|by|by calling|inside|under)\s+(?:only\s+)?(?:(?:the|our|a|an)\s+)?"
    r"(?:\w+\s+)?"
    r"(?:(?:wrapper|script|command|tool)\s+)?$",
    _FLAGS,
)
_IS_ONLY = re.compile(r"^[`\"']?\s+is the only\b", _FLAGS)
_THROUGH = re.compile(r"\b(must|has to|have to|shall|only|always|never)\b.*\b(through|via)\b", _FLAGS)
_NOT_CALLED = re.compile(
    r"\b(?:never|not|don't)\s+(?:ever\s+)?(?:call|run|use|invoke|execute)\s+([a-z][\w.-]*)(?:\s+(?:or|and)\s+([a-z][\w.-]*))?",
    _FLAGS,
)
_NOT_DONE = re.compile(
    r"\b(?:never|not|don't)\s+(ssh|scp|sftp|curl|wget|rsync|docker|kubectl|helm|psql|mysql|git\s+push|git\s+commit)\b",
    _FLAGS,
)
_CLAUSE = re.compile(r"[;:,.]|\bbut\b|\band\b", _FLAGS)
_NEGATED = re.compile(
    r"\b(never|not|don't|cannot|mustn't|no|instead of|rather than|without|forbidden|directly)\b", _FLAGS
)
_EVERY = re.compile(
    r"\b(all|every|any|each)\b[^.]{0,30}\b(commands?|shell|bash|terminal|executions?|programs?)\b", _FLAGS
)
_GIT = re.compile(r"\bgit (push|commit|merge|rebase)(?:e?s)?\b", _FLAGS)
_OPERATIONS = re.compile(
    r"\b(?:all|every|any|each)\s+([A-Za-z][\w.-]+)\s+"
    r"(?:operations?|commands?|calls?|invocations?|access|usage|requests?|runs?)\b",
    _FLAGS,
)
_GENERAL = frozenset(
    "shell bash terminal of the other external system tool such cli console command-line your command commands it they"
    " them this that these those everything all anything calls requests operations and or use".split()
)
_COMMANDS = re.compile(r"\b(shell |bash |terminal )?commands?\b", _FLAGS)
_SOME_COMMANDS = re.compile(
    r"\bcommands?\s+(?:that|which|against|touching|involving|affecting|for|on)\b", _FLAGS
)
_DIRECTLY = re.compile(
    r"\b(?:never|not|don't|mustn't)\s+(?:ever\s+)?(?:call|run|use|invoke|execute)\s+(?:the\s+)?"
    r"[`\"']?([A-Za-z][\w./-]*(?:\s+[\w-]+)?)[`\"']?\s+(?:directly|yourself|on your own|by hand|manually)\b",
    _FLAGS,
)
_INSTEAD = re.compile(r"\b(?:instead of|rather than)\s+(?:plain\s+|bare\s+|raw\s+)?([a-z][\w.-]*)\b", _FLAGS)
_ONLY_VIA = re.compile(
    r"\b(?:call|run|use|invoke|execute)\s+([A-Za-z][\w./-]*(?:\s+[\w-]+)?)\s+only\s+(?:through|via|with|using|by)\b"
    r"|(?:^|[.;:*-]\s+)([A-Za-z][\w.-]*)\s+(?:may|must|shall|should|can|has\s+to)\s+(?:only\s+|always\s+)?"
    r"(?:be\s+(?:only\s+|always\s+)?(?:run|called|invoked|executed|used)|go)\s+(?:only\s+)?(?:through|via|with|using|by)\b",
    _FLAGS,
)
_BANNED = re.compile(
    r"\s(?:is|are)\s+(?:strictly\s+)?(?:forbidden|not allowed|prohibited|banned|off limits)\b", _FLAGS
)
_VERB_OF_GIT = re.compile(r"\bfor\s+(?:every|all|each|any)?\s*(push|commit|merge|rebase)(?:e?s)?\b", _FLAGS)
_CLASSES = (
    # what people call by its purpose, and the programs that do it
    (
        re.compile(
            r"\bHTTPS? (requests?|calls?|traffic)\b|\bweb requests?\b|\bdownloads?\b|\bnetwork (requests?|access)\b"
            r"|\boutbound (requests?|traffic|calls?)\b",
            _FLAGS,
        ),
        ("curl", "wget"),
    ),
    (
        re.compile(
            r"\b(connect\w*|access\w*|quer(y|ies|ying)|talk\w*|reach\w*)\b[^.]{0,30}\bdatabases?\b"
            r"|\bdatabases? (access|quer(y|ies)|connections?|calls?)\b",
            _FLAGS,
        ),
        ("psql", "mysql", "sqlcmd", "mongosh", "redis-cli", "pg_dump", "mysqldump"),
    ),
    (
        re.compile(
            r"\b(deletions?|deleting|removals?|removing) (of )?(any )?files?\b|\bfile deletions?\b", _FLAGS
        ),
        ("rm",),
    ),
)
_OTHER_TOOLS = frozenset(
    "pnpm npm npx yarn bun bunx uv uvx pip pip3 pipx poetry pdm hatch conda rg fd bat eza podman python python3 pytest"
    " ruff eslint biome prettier deno cargo go gh git tsx vitest jest nox tox".split()
)
"""Tools that people prefer to others; none of them wraps the other."""
_LONGEST = 100_000
_LONGEST_SENTENCE = 1000
_LONGEST_LIST = 60


def told_by(text: str) -> Told:
    """What instructions put under protection, and the wrappers that they demand."""
    protected: list[str] = []
    mandates: list[Mandate] = []
    for line in text[:_LONGEST].splitlines():
        if not _MUST.search(line):
            continue
        sentences = [sentence for sentence in _SENTENCE.split(line) if len(sentence) <= _LONGEST_SENTENCE]
        for sentence in sentences:
            if _FORBIDS.search(sentence) and _CONTROLS.search(sentence):
                is_process = bool(_PROCESS.search(sentence))
                protected += (name for _, name in _names(sentence) if _is_thing(name, is_process=is_process))
        found = [mandate for sentence in sentences if (mandate := _mandate(sentence)) is not None]
        if not found and len(sentences) > 1 and len(line) <= _LONGEST_SENTENCE:
            whole = _mandate(line)  # "Every deployment must go through X. Do not run Y yourself."
            found = [whole] if whole is not None else []
        mandates += found
    return Told(tuple(dict.fromkeys(protected)), tuple(dict.fromkeys(mandates)))


def _names(sentence: str) -> Iterator[tuple[int, str]]:
    """Names that a sentence sets off, by quotes or by their form, with their places."""
    spans = []
    for found in _QUOTED.finditer(sentence):
        spans.append(found.span())
        yield found.start(), found[1].strip()
    for found in _BARE.finditer(sentence):
        if not any(start <= found.start() < end for start, end in spans):
            yield found.start(), found[1].rstrip(".")


def _is_thing(name: str, *, is_process: bool) -> bool:
    """Whether a name is one of a file or a process, not a phrase or a word of code."""
    if " " in name or len(name) <= 3:
        return False
    return is_process or not name.isalnum() or bool(GUARDS.search(name))


def _mandate(sentence: str) -> Mandate | None:
    if not _MUST.search(sentence):
        return None
    is_guarded = bool(_GUARDED.search(sentence) or _DIRECTLY.search(sentence))
    if not is_guarded and not any(one.search(sentence) for one in (_INSTEAD, _ONLY_VIA, _BANNED, _THROUGH)):
        return None
    wrapper: str | None = None
    programs: list[str] = []
    for place, name in sorted(_names(sentence)):
        before = sentence[:place]
        is_refused = bool(_NEGATED.search(_CLAUSE.split(before)[-1]))
        is_only = _IS_ONLY.search(sentence[place:].partition(name)[2]) is not None
        if wrapper is None and not is_refused and (is_only or _BEFORE_WRAPPER.search(before)):
            wrapper = name.partition(" -- ")[0].partition("<")[0].strip()
        else:
            programs.append(name)
    if wrapper is None or not _is_command(wrapper) or wrapper.split()[0] in _OTHER_TOOLS:
        return None
    if not is_guarded and not re.search(r"[/_-]|^(make|just|npm run|task) ", wrapper):
        return None
    named = [name for name in programs if _is_command(name) and name != wrapper]
    wrapped = tuple(named or _bare_programs(sentence))
    if wrapped == ("git",) and (verb := _VERB_OF_GIT.search(sentence)) is not None:
        wrapped = (f"git {verb[1].lower()}",)
    is_for_all = bool(_EVERY.search(sentence) or _COMMANDS.search(sentence))
    if not wrapped and (not is_for_all or _SOME_COMMANDS.search(sentence)):
        return None
    return Mandate(wrapper, wrapped)


def _bare_programs(sentence: str) -> list[str]:
    """Programs that stand in a sentence without quotes: "all git operations", "git pushes", "call psql directly"."""
    if verbs := _GIT.findall(sentence):
        return [f"git {verb.lower()}" for verb in verbs]
    names = [name for pattern in (_OPERATIONS, _DIRECTLY, _INSTEAD) for name in pattern.findall(sentence)]
    names += (one or other for one, other in _ONLY_VIA.findall(sentence))
    for banned in _BANNED.finditer(sentence):
        clause = re.split(r"[;:.]", sentence[: banned.start()])[-1]
        names += re.findall(r"[a-z][\w.-]*", clause[-_LONGEST_LIST:], _FLAGS)
    names += (" ".join(name.split()) for name in _NOT_DONE.findall(sentence))
    names += (name for both in _NOT_CALLED.findall(sentence) for name in both if name)
    found = [name.lower() for name in dict.fromkeys(names) if name.lower() not in _GENERAL]
    return found or [
        program for words, programs in _CLASSES if words.search(sentence) for program in programs
    ]


def _is_command(name: str) -> bool:
    return bool(re.fullmatch(r"[\w./~-][\w./~ :=-]{0,60}", name)) and not name.endswith((".md", ".txt"))
