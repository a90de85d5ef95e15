"""Decides by the syntax tree whether a query may run: one statement that reads the tables of the lake, no more.

The engine's own parser makes the tree. Whatever the tree holds that is not listed here is refused: kinds of nodes,
tables, table functions, functions. So what a later engine adds is refused until somebody has looked at it.
"""

import importlib.resources
import json
from collections.abc import Iterable
from typing import Any

import duckdb

from ledger.events.canonical import decode_json
from ledger.lake.sandbox.result import QueryRefusedError

TABLE_FUNCTIONS = frozenset({"generate_series", "json_each", "json_tree", "range", "unnest"})
"""Functions that may stand where a table stands. `read_*`, `glob`, `query`, `duckdb_*` and the like are not here."""

_EXPRESSIONS = frozenset(
    "BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT DEFAULT FUNCTION LAMBDA LAMBDA_REF OPERATOR"
    " PARAMETER POSITIONAL_REFERENCE STAR SUBQUERY TYPE WINDOW".split()
)
_SELECTS = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_SOURCES = frozenset(
    {"BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "PIVOT", "SHOW_REF", "SUBQUERY", "TABLE_FUNCTION"}
)
_REST = frozenset(
    "ASCENDING DESCENDING ORDER_DEFAULT DISTINCT_MODIFIER LIMIT_MODIFIER LIMIT_PERCENT_MODIFIER ORDER_MODIFIER".split()
)
_SHOWN = frozenset({"tables", "__show_tables_expanded"})
_KNOWS_ITSELF = {"RECURSIVE_CTE_NODE": "right", "CTE_NODE": "child"}
_NO_SCOPE: frozenset[str] = frozenset()


class Gate:
    """What a query may name: tables and macros of a lake, and functions of the engine that somebody has looked at."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, longest: int) -> None:
        self._longest = longest
        views = connection.execute(
            "select view_name from duckdb_views() where not internal union all select table_name from duckdb_tables()"
        ).fetchall()
        self.tables = frozenset(_folded(name) for (name,) in views)
        """Tables that it may read."""
        macros = connection.execute(
            "select distinct function_name, function_type from duckdb_functions() where not internal"
        ).fetchall()
        self.sources = TABLE_FUNCTIONS | {_folded(name) for name, kind in macros if kind == "table_macro"}
        """What else may stand where a table stands."""
        listed = (importlib.resources.files("ledger.lake.sandbox") / "functions.json").read_text(
            encoding="utf-8"
        )
        self.functions = self.sources | {_folded(name) for name, _ in macros} | frozenset(json.loads(listed))
        """Functions that it may call."""

    def checked(self, connection: duckdb.DuckDBPyConnection, text: str) -> str:
        """The text to run, as given or as a plain EXPLAIN. Raises QueryRefusedError."""
        try:
            raw = text.encode()
        except UnicodeEncodeError:
            raise QueryRefusedError("the query holds half a character") from None
        if len(raw) > self._longest:
            raise QueryRefusedError(
                f"the query is too long: expected at most {self._longest} bytes, found {len(raw)}"
            )
        if "\0" in text:
            raise QueryRefusedError("the query holds a NUL character")
        kind = _kind(connection, text)
        if kind == duckdb.StatementType.EXPLAIN:
            explained = _after_explain(raw)
            self.check_tree(_tree(connection, explained))
            return f"EXPLAIN {explained}"
        if kind != duckdb.StatementType.SELECT:
            raise QueryRefusedError(
                f"expected SELECT, WITH, DESCRIBE, SUMMARIZE, SHOW TABLES or EXPLAIN, found {kind.name}"
            )
        self.check_tree(_tree(connection, text))
        return text

    def check_tree(self, tree: Any) -> None:
        """Refuse a tree with anything in it that is not allowed. Raises QueryRefusedError."""
        stack: list[tuple[Any, frozenset[str]]] = [(tree, _NO_SCOPE)]
        while stack:
            node, named = stack.pop()
            if isinstance(node, list):
                stack.extend((part, named) for part in node)
            elif isinstance(node, dict):
                self._check_node(node, named)
                stack.extend(_parts(node, named))

    def _check_node(self, node: dict[str, Any], named: frozenset[str]) -> None:
        kind, family = node.get("type"), node.get("class")
        if family is not None:
            if family not in _EXPRESSIONS:
                raise QueryRefusedError(f"{family} is not allowed in a safe query")
            if family in ("FUNCTION", "WINDOW") and _folded(node["function_name"]) not in self.functions:
                raise QueryRefusedError(
                    f"the function {node['function_name']} is not allowed in a safe query"
                )
        elif isinstance(kind, str):
            if kind not in _SELECTS | _SOURCES | _REST:
                raise QueryRefusedError(f"{kind} is not allowed in a safe query: it may only read")
            if kind in _SOURCES:
                self._check_source(kind, node, named)

    def _check_source(self, kind: str, node: dict[str, Any], named: frozenset[str]) -> None:
        if kind == "BASE_TABLE":
            self._check_table(node["table_name"], node, named)
        elif kind == "SHOW_REF" and node.get("query") is None:
            name = node["table_name"].strip('"')
            if node.get("show_type") != "SHOW_SPECIAL":
                self._check_table(name, node, _NO_SCOPE)
            elif name not in _SHOWN:
                raise QueryRefusedError("expected SHOW TABLES or SHOW and the name of a table")
        elif kind == "TABLE_FUNCTION":
            call = node["function"]
            if call.get("class") != "FUNCTION" or _folded(call["function_name"]) not in self.sources:
                raise QueryRefusedError(
                    f"the table function {call.get('function_name')} is not allowed in a safe query: "
                    f"expected one of {', '.join(sorted(self.sources))}"
                )

    def _check_table(self, name: str, node: dict[str, Any], named: frozenset[str]) -> None:
        if node.get("schema_name") or node.get("catalog_name"):
            raise QueryRefusedError(
                f"expected the name of a table of the lake without a prefix, found {name[:100]} with one"
            )
        if _folded(name) not in named | self.tables:
            raise QueryRefusedError(
                f"there is no table {name[:100]!r} in a safe query: expected one of {', '.join(sorted(self.tables))}"
            )


def _kind(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.StatementType:
    """The kind of the one statement that a text holds."""
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise QueryRefusedError(f"the query cannot be run: {_first_line(error)}") from error
    if len(statements) != 1:
        raise QueryRefusedError(f"expected one statement, found {len(statements)}")
    try:
        return statements[0].type
    except ValueError:  # the engine knows kinds of statements that its Python module has no name for
        raise QueryRefusedError("expected SELECT, found a statement of another kind") from None


def _after_explain(raw: bytes) -> str:
    """What is explained. The engine's tokens say where it begins; it is then parsed as a query of its own."""
    for at, kind in duckdb.tokenize(raw.decode()):
        if kind == duckdb.token_type.comment:
            continue
        if kind == duckdb.token_type.keyword and raw[at : at + 7].lower() == b"explain":
            return raw[at + 7 :].decode()
        break
    raise QueryRefusedError("expected EXPLAIN and a query")


def _tree(connection: duckdb.DuckDBPyConnection, text: str) -> Any:
    try:
        ((serialized,),) = connection.execute("select json_serialize_sql($1)", [text]).fetchall()
        tree = decode_json(serialized)
    except (duckdb.Error, ValueError, RecursionError) as error:
        raise QueryRefusedError(f"the query cannot be run: {_first_line(error)}") from error
    if tree.get("error") is not False:
        raise QueryRefusedError(f"the query cannot be run: {tree.get('error_message', 'no syntax tree')}")
    if len(tree["statements"]) != 1:
        raise QueryRefusedError(f"expected one statement, found {len(tree['statements'])}")
    return tree["statements"][0]["node"]


def _parts(node: dict[str, Any], named: frozenset[str]) -> Iterable[tuple[Any, frozenset[str]]]:
    """The parts of a node, each with the names that stand for a query of a WITH there, and not for a table."""
    for entry in (node.get("cte_map") or {}).get("map", ()):
        yield entry["value"], named
        named |= {_folded(entry["key"])}
    inside = _KNOWS_ITSELF.get(str(node.get("type")), "")  # elsewhere the name is still that of a table
    for name, part in node.items():
        if name != "cte_map":
            yield part, named | {_folded(node["cte_name"])} if name == inside else named


def _folded(name: str) -> str:
    return name.lower()


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:500]
