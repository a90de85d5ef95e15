"""LangGraph checkpoints: databases of SqliteSaver and AsyncSqliteSaver, and of PostgresSaver by its URL.

Values are decoded by a reader of our own: no class that a checkpoint names is imported, and no pickle is loaded.
"""

from collections.abc import Iterator
from pathlib import Path

from ledger.importers import Desk, Item, Sniff
from ledger.importers._langgraph import postgres, scribe
from ledger.importers._langgraph.messages import Messages
from ledger.importers._langgraph.saver import Saver
from ledger.importers._langgraph.sqlite import SqliteSaver, is_saver
from ledger.importers._langgraph.thread import ThreadReader
from ledger.importers._langgraph.values import Decoder
from ledger.importers._postgres import PostgresDatabase, is_postgres
from ledger.importers._sqlite import open_database, tables_of

FORMAT = scribe.FORMAT
TITLE = "LangGraph checkpoints in SQLite or PostgreSQL (tested with 1.2)"
GRADE = scribe.GRADE
CANNOT_SHOW = (
    "System prompt, tool schemas and parameters of a model request, unless the prompt is a message of the state.",
    "Whether a node changed the messages before it asked the model: the state stands for the request.",
    "Model calls whose answer is no message of the state, such as those that write a summary; failed attempts.",
    "When a model call or a tool call began: times are those of the checkpoint that holds its result.",
    "Who answered an interrupt, and answers before the last: resuming a checkpoint again overwrites the row.",
    "Stops that were set up without an interrupt (`interrupt_before`, `interrupt_after`).",
    "The text of an earlier question in a node that asks more than once.",
    "Values that are pickled or encrypted: they are kept as bytes, unread.",
    "What a thread held before it was pruned or deleted.",
)


def recognizes(sniff: Sniff) -> bool:
    """A database with the tables of LangGraph's saver."""
    return is_saver(tables_of(sniff))


def read(path: Path, desk: Desk) -> Iterator[Item]:
    """The rows of a database, thread by thread, each thread's checkpoints oldest first."""
    with open_database(path) as database:
        yield from _items(SqliteSaver(database), desk)


def reads_url(url: str) -> bool:
    """A PostgreSQL database with the tables of LangGraph's saver."""
    if not is_postgres(url):
        return False
    with PostgresDatabase(url) as database:
        return postgres.is_saver(database.tables())


def read_url(url: str, desk: Desk) -> Iterator[Item]:
    """The same rows, from the tables of PostgresSaver."""
    with PostgresDatabase(url) as database:
        yield from _items(postgres.PostgresSaver(database), desk)


def _items(saver: Saver, desk: Desk) -> Iterator[Item]:
    decoder, messages = Decoder(), Messages(desk)
    for thread in saver.threads():
        yield from ThreadReader(desk, saver, thread, decoder, messages).items()
