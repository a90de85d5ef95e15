"""What one session's instructions, settings and refusals have put under protection, with the records that did so."""

import re
from collections import OrderedDict
from collections.abc import Iterable

from ledger.audit.bounding import bound
from ledger.audit.controls import in_system
from ledger.audit.patching import Touch
from ledger.audit.protecting import Told, bare
from ledger.audit.scripts import Command

_MOST = 500
_LONGEST = 20_000
_SETTINGS = re.compile(
    r"\.(ya?ml|json|toml|conf|service|timer|ini|plist)$|(^|/)(Procfile|crontab)$", re.IGNORECASE
)
_VARIABLE = re.compile(r"^(--unset=)?[A-Z][A-Z0-9_]+$")
_FIREWALLS = frozenset({"iptables", "ip6tables", "nft", "ufw"})


class Protection:
    """The files, processes and ports of one session that its agent is to leave alone."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, int] = OrderedDict()
        self._guards: OrderedDict[str, int] = OrderedDict()
        self._governing: OrderedDict[str, int] = OrderedDict()

    def protect(self, names: Iterable[str], seq: int) -> None:
        """These are under protection."""
        for name in names:
            self._names.setdefault(bare(name), seq)
        bound(self._names, _MOST)

    def told(self, told: Told, seq: int) -> None:
        """Instructions say so."""
        self.protect(told.protected, seq)
        for name in told.governing:
            self._governing.setdefault(bare(name), seq)
        bound(self._governing, _MOST)

    def guards(self, name: str, seq: int) -> None:
        """Something of this name, or path, had refused: it is a guard."""
        if "/" in name:
            self.protect([name], seq)
        else:
            self._guards.setdefault(name, seq)
            bound(self._guards, _MOST)

    def of_file(self, path: str, project: str | None) -> int | None:
        """The record by which a file is under protection; in the project, the name of a guard is a name like others."""
        for name, seq in self._names.items():
            if path == name or path.endswith(f"/{name}") or (name.endswith("/") and f"/{name}" in f"/{path}"):
                return seq
            if "/" in name and path.startswith(f"{name}/"):
                return seq
        if in_system(path, project):
            parts = path.split("/")
            for name, seq in self._guards.items():
                if any(part == name or part.startswith((f"{name}.", f"{name}-")) for part in parts):
                    return seq
        return None

    def of_process(self, name: str) -> int | None:
        """The record by which a process is under protection."""
        witness = self.of_file(name, None)
        if witness is not None:
            return witness
        known = [*self._guards.items(), *((one, seq) for one, seq in self._names.items() if _is_process(one))]
        return next((seq for guard, seq in known if guard in name), None)

    def of_command(self, command: Command) -> int | None:
        """The record by which a port is under protection that a command of the firewall is about, or a variable that
        a command takes away.
        """
        program = command.words[0].rpartition("/")[2] if command.words else ""
        named: set[str] = set()
        if program in _FIREWALLS:
            named = {f":{word}" for word in command.words if word.isdigit()}
        elif program == "unset" or "env" in command.whole[:3]:
            named = {word.removeprefix("--unset=") for word in command.whole if _VARIABLE.search(word)}
        return next((seq for name, seq in self._names.items() if name in named), None)

    def within(self, touch: Touch) -> int | None:
        """The record by which a process is under protection of which a file of settings, that is changed, says when
        and how it runs.
        """
        if not _SETTINGS.search(touch.path):
            return None
        said = f"{touch.replaced}\n{touch.content or ''}"[:_LONGEST]
        return next((seq for name, seq in self._names.items() if _is_process(name) and name in said), None)

    def governs(self, path: str) -> bool:
        """Whether instructions name a file as what governs the agent."""
        return any(path == name or path.endswith(f"/{name}") for name in self._governing)


def _is_process(name: str) -> bool:
    return "-" in name and "/" not in name and "." not in name
