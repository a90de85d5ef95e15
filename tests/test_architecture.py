"""House rules that no linter keeps, or that no comment may switch off. Messages say what to write instead."""

import ast
import functools
import importlib
import io
import re
import socket
import tokenize
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PRODUCT = ("ledger", "replay", "webui")
PACKAGES = (*PRODUCT, "tests")

MOST_LINES = 400
CODE_IN_INIT = {"ledger/importers/__init__.py"}
"""The only `__init__.py` with code: the protocol of importers and how they are found."""

TICKET = re.compile(
    r"(?<![\w&#])#\d+\b|\b(?:issue|ticket|milestone|pull request|PR)[ -]?#?\d+\b", re.IGNORECASE
)
MAYBE_TICKET = re.compile(r"#\d|(?:issue|ticket|milestone|request|PR)[ -]?#?\d", re.IGNORECASE)
"""Stands in every file whose comments name a ticket: what has it not need not be taken apart."""

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One Python file."""

    name: str
    """Its path from the root, with slashes."""

    tree: ast.Module
    """What it says."""


def files(packages: Iterable[str], *suffixes: str) -> Iterator[Path]:
    """The files of our packages with these suffixes, sorted; none of what tools leave behind."""
    for package in packages:
        for path in sorted((ROOT / package).rglob("*")):
            if path.suffix in suffixes and path.is_file() and "__pycache__" not in path.parts:
                yield path


@functools.cache
def parsed(path: Path) -> ast.Module:
    """What a Python file says."""
    return ast.parse(path.read_text(encoding="utf-8"), path)


def modules(packages: tuple[str, ...]) -> list[Module]:
    """Every Python file of these packages."""
    return [Module(path.relative_to(ROOT).as_posix(), parsed(path)) for path in files(packages, ".py")]


def report(rule: str, offences: Iterable[str]) -> None:
    """Fail with the rule and every offence."""
    found = list(offences)
    assert not found, "\n  ".join([rule, *found])


def imported_names(node: ast.AST) -> list[str]:
    """The names that a node imports; those of `from . import x` start with a dot."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [module, *(f"{module}.{alias.name}" for alias in node.names)]
    return []


def imports_in_functions(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that stand in a function. Looks at statements: an expression holds none."""
    waiting: list[tuple[ast.AST, bool]] = [(tree, False)]
    while waiting:
        node, is_inside = waiting.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            if is_inside:
                yield node
        elif not isinstance(node, ast.expr):
            is_inside = is_inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            waiting += [(inner, is_inside) for inner in ast.iter_child_nodes(node)]


def test_no_file_is_long() -> None:
    lengths = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8").count("\n")
        for path in files(PACKAGES, ".py", ".sql", ".html", ".css")
    }
    report(
        f"A file has at most {MOST_LINES} lines, best about 150. Split it by job: one job, one file.",
        (f"{name}: {length} lines" for name, length in lengths.items() if length > MOST_LINES),
    )


def test_our_own_code_is_imported_at_the_top() -> None:
    report(
        "An import of our own code inside a function hides a circle. Import at the top of the module; if that"
        " makes a circle, move what both need into the lower of the two layers.",
        sorted(
            f"{module.name}:{node.lineno}"
            for module in modules(PACKAGES)
            for node in imports_in_functions(module.tree)
            if any(name.split(".")[0] in (*PACKAGES, "") for name in imported_names(node))
        ),
    )


def test_no_import_is_for_the_type_checker_alone() -> None:
    report(
        "TYPE_CHECKING hides a circle. Import at the top; if that makes one, move the type down a layer.",
        (
            f"{module.name}:{node.lineno}"
            for module in modules(PACKAGES)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        ),
    )


def undocumented(module: Module) -> Iterator[str]:
    """The public names of a module that have no docstring; of a file of tests, only the module."""
    if ast.get_docstring(module.tree) is None:
        yield f"{module.name}: the module"
    if Path(module.name).name.startswith("test_"):
        return
    waiting: list[ast.Module | ast.ClassDef] = [module.tree]
    while waiting:
        for node in waiting.pop().body:
            if not isinstance(node, Documented) or node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                waiting.append(node)
            second_half = any(
                isinstance(mark, ast.Attribute) and mark.attr == "setter" for mark in node.decorator_list
            )
            if not second_half and ast.get_docstring(node) is None:
                yield f"{module.name}:{node.lineno}: {node.name}"


def test_public_names_are_described() -> None:
    report(
        "A module says what it is for and what it must not do, a public class or function in one sentence"
        " what it is or does. Write that docstring; a name for one file starts with an underscore.",
        (place for module in modules(PACKAGES) for place in undocumented(module)),
    )


def stands_in_init(node: ast.stmt) -> bool:
    """Whether a statement may stand in an `__init__.py`."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    targets = (
        node.targets
        if isinstance(node, ast.Assign)
        else [node.target]
        if isinstance(node, ast.AnnAssign)
        else []
    )
    return [ast.unparse(target) for target in targets] == ["__all__"]


def test_init_files_hold_no_code() -> None:
    report(
        "An __init__.py holds a docstring, imports and __all__. Move the code into a module beside it that is"
        " named for what it does.",
        (
            f"{module.name}:{node.lineno}"
            for module in modules(PRODUCT)
            if module.name.endswith("__init__.py") and module.name not in CODE_IN_INIT
            for node in module.tree.body
            if not stands_in_init(node)
        ),
    )


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a Python file, or the comments of a SQL file, each with its line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sql":
        for number, line in enumerate(text.splitlines(), 1):
            yield number, line.partition("--")[2]
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.removeprefix("#")
    for node in ast.walk(parsed(path)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            yield node.lineno, node.value.value


def test_no_comment_names_a_ticket() -> None:
    report(
        "A comment gives the reason itself; the number of a ticket is history that a reader does not have.",
        (
            f"{path.relative_to(ROOT).as_posix()}:{line}: {found[0]}"
            for path in files(PACKAGES, ".py", ".sql")
            if MAYBE_TICKET.search(path.read_text(encoding="utf-8"))
            for line, text in prose(path)
            if (found := TICKET.search(text))
        ),
    )


def test_only_command_lines_print() -> None:
    report(
        "Only a command line prints (a module or package named cli). Return the value; the command shows it.",
        (
            f"{module.name}:{node.lineno}"
            for module in modules(("ledger", "replay"))
            if "cli" not in Path(module.name).with_suffix("").parts
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ),
    )


def dotted(module: Module) -> str:
    """The name by which a module is imported."""
    return ".".join(Path(module.name).with_suffix("").parts).removesuffix(".__init__")


def missing_exports(module: Module) -> Iterator[str]:
    """The names in the `__all__` of a module that it does not have."""
    imported = importlib.import_module(dotted(module))
    for name in getattr(imported, "__all__", ()):
        if not hasattr(imported, name):
            yield f"{module.name}: {name}"


def test_all_names_what_exists() -> None:
    report(
        "__all__ lists names that the module has. Import the missing name, or take it off the list.",
        (
            place
            for module in modules(PRODUCT)
            if any(isinstance(node, ast.Name) and node.id == "__all__" for node in ast.walk(module.tree))
            for place in missing_exports(module)
        ),
    )


def test_importers_do_not_know_each_other() -> None:
    importers = [
        module
        for module in modules(("ledger/importers",))
        if not any(part.startswith("_") for part in Path(module.name).with_suffix("").parts)
    ]
    sources = {module.name: dotted(module).split(".")[2] for module in importers}
    report(
        "An importer knows no other importer: all facts of one source stand in one file, what several share"
        " in a helper whose name starts with an underscore.",
        (
            f"{module.name}:{node.lineno}: {name}"
            for module in importers
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in imported_names(node)
            for source in sources.values()
            if source != sources[module.name] and name in (f"ledger.importers.{source}", f".{source}")
        ),
    )


def test_no_test_can_reach_another_machine() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sender:
        with pytest.raises(RuntimeError, match="may only reach this machine"):
            sender.connect(("192.0.2.1", 9))  # an address kept for documentation
        with pytest.raises(RuntimeError, match="may only reach this machine"):
            sender.sendto(b"", ("192.0.2.1", 9))
        sender.connect(("127.0.0.1", 9))
    with pytest.raises(RuntimeError, match="may only reach this machine"):
        socket.getaddrinfo("example.invalid", 80)
    assert socket.getaddrinfo("localhost", 80)


LOCKS = {
    "requirements.lock": "lock",
    "tests/spark/spark.lock": "lock-spark",
    **{
        str(path.relative_to(ROOT)): "lock-frameworks"
        for path in sorted(ROOT.glob("tests/frameworks/*.lock"))
    },
}


@pytest.mark.parametrize(("lock", "target"), LOCKS.items())
def test_each_lock_fits_the_project_file(lock: str, target: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", "\n".join(lines), re.MULTILINE))
    wanted = list(project["project"]["dependencies"])
    if lock == "requirements.lock":
        extras = project["project"]["optional-dependencies"]
        wanted += [*project["build-system"]["requires"], *extras["postgres"], *extras["dev"]]
    requirements = [Requirement(text) for text in wanted]
    rule = f"{lock} pins what pyproject.toml asks for, by hash, and names no registry: run make {target}."
    report(
        rule,
        (
            f"{requirement}: pinned is {pinned.get(requirement.name, 'nothing')}"
            for requirement in requirements
            if not requirement.specifier.contains(pinned.get(requirement.name, "0"))
        ),
    )
    report(
        rule,
        (line for line in lines if "://" in line or "index-url" in line),
    )
