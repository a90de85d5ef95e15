"""A world for a loop to act on: a workspace, a mail server, an API without return, rows in PostgreSQL. All of it real.

Tools are those of a user; what reached the outside is counted by the outside.
"""

import contextlib
import smtplib
import socketserver
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psycopg


class MailServer(socketserver.ThreadingTCPServer):
    """As much SMTP as a client needs; counts the mails."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.mails: list[bytes] = []


class _Mail(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, MailServer)
        self.wfile.write(b"220 mail\r\n")
        while line := self.rfile.readline():
            verb = line[:4].upper()
            if verb == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                mail = b""
                while (part := self.rfile.readline()) not in (b".\r\n", b""):
                    mail += part
                server.mails.append(mail)
                self.wfile.write(b"250 queued as 8F3A21\r\n")
            elif verb == b"QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 ok\r\n")


class Bank(ThreadingHTTPServer):
    """An API that cannot be taken back; counts its calls."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Transfer)
        self.transfers: list[bytes] = []


class _Transfer(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Bank)
        server.transfers.append(self.rfile.read(int(self.headers["content-length"])))
        body = b'{"transfer": "tr_77120043"}'
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class World:
    """The tools, and what they act on."""

    def __init__(self, workspace: Path, database: str, mail: MailServer, bank: Bank) -> None:
        self.workspace = workspace
        self.database = database
        self.mail = mail
        self.bank = bank
        self.compensated = 0

    # -- tools ---------------------------------------------------------------------------------------------

    def edit_file(self, path: str, content: str) -> str:
        """Write a file."""
        (self.workspace / path).write_text(content)
        return f"wrote {path}"

    def bash(self, command: str) -> str:
        """Run a shell command."""
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.workspace, capture_output=True, text=True, check=True
        )
        return done.stdout

    def send_mail(self, to: str, text: str) -> str:
        """Send a mail."""
        host, port = self.mail.server_address[:2]
        with smtplib.SMTP(str(host), int(port), local_hostname="localhost") as client:
            client.sendmail("loop@example.org", [to], f"To: {to}\r\n\r\n{text}\r\n")
        return "queued as 8F3A21"

    def insert_rows(self, names: list[str]) -> dict[str, list[int]]:
        """Insert customers."""
        with psycopg.connect(self.database) as connection:
            ids = [
                row[0]
                for name in names
                for row in connection.execute(
                    "insert into customers (name) values (%s) returning id", (name,)
                ).fetchall()
            ]
        return {"ids": ids}

    def transfer(self, amount: int, reference: str) -> str:
        """Move money."""
        host, port = self.bank.server_address[:2]
        body = f"{amount} {reference}".encode()
        request = urllib.request.Request(f"http://{host!s}:{port}/transfers", data=body, method="POST")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return str(answer.read().decode())

    # -- what takes back -----------------------------------------------------------------------------------

    def delete_rows(self, ids: list[int]) -> None:
        """Delete customers."""
        self.compensated += 1
        with psycopg.connect(self.database) as connection:
            connection.execute("delete from customers where id = any(%s)", (ids,))

    def customers(self) -> list[str]:
        """All names."""
        with psycopg.connect(self.database) as connection:
            return [row[0] for row in connection.execute("select name from customers order by id")]


@contextlib.contextmanager
def running_world(workspace: Path, database: str) -> Iterator[World]:
    """The servers, as long as the block."""
    with psycopg.connect(database) as connection:
        connection.execute("create table customers (id serial primary key, name text not null)")
    with MailServer() as mail, Bank() as bank:
        threads = [threading.Thread(target=server.serve_forever, args=(0.02,)) for server in (mail, bank)]
        for thread in threads:
            thread.start()
        try:
            yield World(workspace, database, mail, bank)
        finally:
            mail.shutdown()
            bank.shutdown()
            for thread in threads:
                thread.join()


def fill_workspace(folder: Path) -> None:
    """Files of all sorts, as a loop finds them."""
    folder.mkdir()
    (folder / "src").mkdir()
    (folder / "notes.txt").write_text("first\n")
    (folder / "src" / "run.sh").write_text("#!/bin/sh\necho hello\n")
    (folder / "src" / "run.sh").chmod(0o755)
    (folder / "photo.bin").write_bytes(bytes(range(256)) * 40)
    (folder / "old.txt").write_text("to be removed")
    (folder / "link").symlink_to("notes.txt")
    (folder / "empty").mkdir()


def picture(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every path with its mode and its bytes, or where it leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            content = str(path.readlink()).encode()
        else:
            content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found
