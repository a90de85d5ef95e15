"""Walks JSON values of any depth and copies only what changes.

Must not recurse and must not touch its input.
"""

from typing import NamedTuple, Optional

from ledger.redaction.names import NOTHING, Name, judge_text

Json = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

_NAME_KEYS = ("name", "key", "Name", "Key", "header", "k", "field", "variable")
_VALUE_KEYS = frozenset(
    ("value", "Value", "stringValue", "string_value", "v", "val", "values", "arrayValue", "default")
)
_INNER_KEYS = frozenset(
    ("value", "stringValue", "string_value", "arrayValue", "values", "data", "secretValue", "SecretString")
)
_KEY_PARTS = frozenset(("d", "p", "q", "dp", "dq", "qi", "k"))
_SECRET = Name(2, False)
_TAKEN = (str, dict, list)


class Node(NamedTuple):
    """One container and the way to it; the chain of nodes is the path: depth costs nothing until needed."""

    parent: Optional["Node"]
    """The container around it; None at the top."""

    step: str | int
    """Key or index in the parent."""

    container: dict[str, Json] | list[Json]
    """The container itself, as given."""


class Leaf(NamedTuple):
    """A string in a value, and what the names around it promise."""

    node: Node
    """The container that holds it."""

    step: str | int
    """Its key or index there."""

    text: str
    """The string: a value, or a key."""

    name: Name
    """The verdict on its name."""

    label: str
    """The name itself."""

    is_key: bool
    """Whether the string is a dictionary key."""


Sight = tuple[Node, str | int, str, Name, str, bool]
"""The fields of a leaf. Nearly all strings are clean: only for the others a leaf is made."""


def strings(value: dict[str, Json] | list[Json]) -> list[Sight]:
    """Every string of four characters and more, keys included, with what its surroundings call it."""
    found: list[Sight] = []
    stack: list[tuple[Node, Name, str]] = [(Node(None, "", value), NOTHING, "")]
    while stack:
        node, inherited, label = stack.pop()
        container = node.container
        if isinstance(container, dict):
            _of_dict(node, container, inherited, label, stack, found)
        else:
            _of_list(node, container, inherited, label, stack, found)
    return found


def _of_dict(
    node: Node,
    container: dict[str, Json],
    inherited: Name,
    label: str,
    stack: list[tuple[Node, Name, str]],
    found: list[Sight],
) -> None:
    pair, pair_label = _pair_name(container)
    is_key_set = "kty" in container
    has_context = is_key_set or pair.strength or inherited.strength
    for key, item in container.items():
        if type(key) is str and len(key) >= 6:
            found.append((node, key, key, NOTHING, "", True))
        if not isinstance(item, _TAKEN):
            continue
        name, named = judge_text(key) if type(key) is str else NOTHING, key
        if has_context:
            if pair.strength and key in _VALUE_KEYS:
                name, named = pair, pair_label
            elif inherited.strength >= 2 and key in _INNER_KEYS:
                name, named = inherited, label
            elif (inherited.strength >= 2 and "cookie" in label.lower()) or (
                is_key_set and key in _KEY_PARTS
            ):
                name = _SECRET
        if not isinstance(item, str):
            stack.append((Node(node, key, item), name, named))
        elif len(item) >= 4:
            found.append((node, key, item, name, named, False))


def _of_list(
    node: Node,
    container: list[Json],
    inherited: Name,
    label: str,
    stack: list[tuple[Node, Name, str]],
    found: list[Sight],
) -> None:
    is_pair = len(container) == 2
    flag, flag_label = NOTHING, ""
    for index, item in enumerate(container):
        if isinstance(item, str):
            name, named = inherited, label
            if flag.strength >= 2 and not item.startswith("-"):
                name, named = flag, flag_label
            flag, flag_label = NOTHING, ""
            if len(item) >= 4:
                found.append((node, index, item, name, named, False))
                if item.startswith("-") or (is_pair and index == 0):
                    flag, flag_label = _flag_name(item, is_pair and not item.startswith("-"), container), item
        elif isinstance(item, dict | list):
            is_value_of_pair = is_pair and index == 1 and flag.strength >= 2
            stack.append(
                (Node(node, index, item), flag if is_value_of_pair else inherited, flag_label or label)
            )


def _flag_name(item: str, is_pair: bool, container: list[Json]) -> Name:
    """What `--password` or the first of a pair says of the next item."""
    name = judge_text(item.lstrip("-"))
    if not is_pair or name.strength == 3:
        return name
    second = container[1]
    is_odd = isinstance(second, str) and any(character.isdigit() for character in second)
    return name if is_odd else NOTHING


def _pair_name(container: dict[str, Json]) -> tuple[Name, str]:
    """The verdict on `{"name": ..., "value": ...}` and its kin."""
    if not 2 <= len(container) <= 12 or _VALUE_KEYS.isdisjoint(container):
        return NOTHING, ""
    for key in _NAME_KEYS:
        label = container.get(key)
        if isinstance(label, str):
            return judge_text(label), label
    return NOTHING, ""


class Copy:
    """The changed copy of a value: containers on the way to a change are copied once, all others shared."""

    def __init__(self) -> None:
        self._copies: dict[int, dict[str, Json] | list[Json]] = {}
        self._nodes: list[Node] = []  # keeps the nodes alive, and so their ids unique
        self._renamed: dict[int, tuple[Node, dict[str, str]]] = {}

    def put(self, leaf: Leaf, text: str) -> None:
        """Replaces one string."""
        if leaf.is_key:
            self._renamed.setdefault(id(leaf.node), (leaf.node, {}))[1][leaf.text] = text
            self._of(leaf.node)
            return
        container = self._of(leaf.node)
        container[leaf.step] = text  # type: ignore[index]

    def finish(self, value: Json) -> Json:
        """The copy, or the value itself where nothing was replaced. Renamed keys keep their order."""
        for node, names in self._renamed.values():
            container = self._of(node)
            assert isinstance(container, dict)
            items = list(container.items())
            container.clear()
            for key, item in items:
                name = names.get(key, key)
                while name in container:
                    name += "'"  # two keys became one text: none may be lost
                container[name] = item
        top = next((node for node in self._nodes if node.parent is None), None)
        return value if top is None else self._copies[id(top)]

    def _of(self, node: Node) -> dict[str, Json] | list[Json]:
        missing: list[Node] = []
        current: Node | None = node
        while current is not None and id(current) not in self._copies:
            missing.append(current)
            current = current.parent
        for item in reversed(missing):
            copied = item.container.copy()
            self._copies[id(item)] = copied
            self._nodes.append(item)
            if item.parent is not None:
                self._copies[id(item.parent)][item.step] = copied  # type: ignore[index]
        return self._copies[id(node)]


def pointer(leaf: Leaf, renamed: str | None = None) -> str:
    """The JSON pointer to a string; a redacted key is shown by its marker."""
    steps = [leaf.step if renamed is None else renamed]
    node: Node | None = leaf.node
    while node is not None and node.parent is not None:
        steps.append(node.step)
        node = node.parent
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in reversed(steps))
