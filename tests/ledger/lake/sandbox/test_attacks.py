"""Attacks on safe queries: none reads, writes or connects; each layer is tried alone too."""

import hashlib
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ledger.lake import Lake
from ledger.lake.connection import connect_files
from ledger.lake.sandbox import Limits, QueryRefusedError, SafeQueries, landlock
from ledger.lake.sandbox.gate import Gate
from tests.ledger.lake.feeds import feed_of, golden_rows
from tests.ledger.lake.sandbox.attacks import HUNGRY, KNOWN, LATER, MORE, Places

SECRET = "the-secret-that-nobody-reads"
ATTACKS = KNOWN | MORE | LATER
names = [SECRET]
"""What a query that can see the program's variables would find."""

OF_THE_ENGINE = ("install", "load", "load by path", "persistent secret", "connect")
"""Left out where nothing but one layer holds them: a bare engine would go and look for extensions."""

SLOW = ("endless device", "sleep_ms", "deep brackets", "rows without end")
"""What only limits of time hold."""


class Ground:
    """A lake, a secret beside it, a folder to write to, a port that listens."""

    def __init__(self, folder: Path) -> None:
        self.lake = folder / "lake"
        Lake(self.lake).export(feed_of(golden_rows(200)))
        self.folder = folder
        secret = folder / "secret.csv"
        secret.write_text(f"a\n{SECRET}\n")
        (self.lake / "link.csv").symlink_to(secret)
        (folder / "out").mkdir()
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.setblocking(False)
        file = sorted(path.relative_to(self.lake) for path in self.lake.rglob("*.parquet"))[0]
        self.places = Places(
            str(secret), str(self.lake), str(file), str(folder / "out"), self.listening.getsockname()[1]
        )
        self.before = self.now()

    def now(self) -> dict[str, str]:
        """Every file and what is in it."""
        return {
            str(path): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def aimed(self, attack: str) -> str:
        """The text of an attack."""
        return attack.format(**self.places._asdict())

    def assert_unharmed(self) -> None:
        """Nothing was written, nobody connected."""
        assert self.now() == self.before
        with pytest.raises(BlockingIOError):
            self.listening.accept()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    made = Ground(tmp_path_factory.mktemp("ground"))
    with made.listening:
        yield made


@pytest.fixture(scope="module", params=["landlock", "dataset"])
def queries(ground: Ground, request: pytest.FixtureRequest) -> Iterator[SafeQueries]:
    """Both ways to the rows: fenced by Landlock, or through Arrow where there is none."""
    if request.param == "landlock" and not landlock.version():
        pytest.skip("this kernel has no Landlock")
    with SafeQueries(ground.lake, Limits(seconds=60), is_fenced=request.param == "landlock") as made:
        yield made


def test_there_are_enough_attacks() -> None:
    assert len(KNOWN) == 49
    assert len(MORE) >= 20
    assert len(ATTACKS | HUNGRY) == len(KNOWN) + len(MORE) + len(LATER) + len(HUNGRY)


@pytest.mark.parametrize("attack", KNOWN | MORE)
def test_an_attack_is_refused_and_does_nothing(ground: Ground, queries: SafeQueries, attack: str) -> None:
    sql = ground.aimed(ATTACKS[attack])
    with pytest.raises(QueryRefusedError) as refused:
        queries.run(sql)
    message = str(refused.value)
    assert SECRET not in message
    assert ground.places.lake in sql or ground.places.lake not in message
    assert ground.places.file in sql or ground.places.file not in message
    ground.assert_unharmed()


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "deep brackets"])
def test_the_gate_alone_refuses_it(ground: Ground, attack: str) -> None:
    with connect_files([]) as connection, pytest.raises(QueryRefusedError):
        Gate(connection, Limits().text_bytes).checked(connection, ground.aimed(ATTACKS[attack]))
    ground.assert_unharmed()


@pytest.mark.parametrize("layer", ["landlock", "engine"])
def test_a_layer_behind_the_gate_holds_alone(ground: Ground, layer: str) -> None:
    if layer == "landlock" and not landlock.version():
        pytest.skip("this kernel has no Landlock")
    attacks = {
        name: ground.aimed(sql) for name, sql in ATTACKS.items() if name not in (*OF_THE_ENGINE, *SLOW)
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.ledger.lake.sandbox.bare", layer, str(ground.lake)],
        input=json.dumps(attacks).encode(),
        stdout=subprocess.PIPE,
        check=True,
        timeout=200,
    )
    told = json.loads(done.stdout)
    assert told["fence"]
    assert told["told"].keys() == attacks.keys()
    assert [name for name, answer in told["told"].items() if SECRET in answer] == []
    ground.assert_unharmed()


def test_the_attacks_are_real(ground: Ground) -> None:
    """An engine without any layer gives the secret away: what the tests above look for is what they would find."""
    with duckdb.connect() as bare:
        for attack in (
            "read_csv",
            "path as a table",
            "read_text",
            "query",
            "serialized sql",
            "subquery in limit",
        ):
            sql = ground.aimed(ATTACKS[attack]).replace("limit (select size", "where 'a' < (select content")
            assert bare.execute(sql).fetchall() or attack == "subquery in limit"
        assert SECRET in repr(bare.execute(ground.aimed(KNOWN["read_text"])).fetchall())
