"""A process that writes to a ledger or follows it, and says on its standard output what it is sure of.

`python -m tests.ledger.store.writer append URL SESSION COUNT SIZE…` appends until COUNT records are there, in turn
SIZE at once, and prints the seq of the last record of each append when it is acknowledged.
With `append-durable` each append is to survive the death of the machine.
`python -m tests.ledger.store.writer follow URL COUNT` prints `POSITION SESSION SEQ` of COUNT records as they come.
Both print `ready`, and begin when they are sent a line.
"""

import itertools
import sys

from ledger.recorder import utc_now
from ledger.store import open_store
from tests.ledger.store.databases import attach, note


def _append(url: str, session: str, count: int, sizes: list[int], *, durable: bool) -> None:
    with open_store(url) as store:
        _wait()
        written = 0
        for size in itertools.cycle(sizes):
            size = min(size, count - written)
            if size == 0:
                return
            contents = [f"{session} {number}".encode() for number in range(written, written + size)]
            attachments, _ = attach(store, *contents, durable=durable)
            drafts = [note(store, content) for content in contents]
            records = store.append({session: drafts}, stamp=utc_now, attachments=attachments)
            print(records[-1].seq, flush=True)
            written += size


def _follow(url: str, count: int) -> None:
    with open_store(url) as store:
        _wait()
        for record in itertools.islice(store.follow(poll_s=0.01), count):
            print(record.position, record.session, record.seq, flush=True)


def _wait() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["append" | "append-durable" as how, url, session, count, *sizes]:
            numbers = [int(size) for size in sizes]
            _append(url, session, int(count), numbers, durable=how == "append-durable")
        case ["follow", url, count]:
            _follow(url, int(count))
        case wrong:
            raise SystemExit(f"expected append or follow, found {wrong}")
