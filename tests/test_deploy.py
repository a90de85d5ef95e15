"""The compose file and its guide, as far as they can be checked without containers: names, pins, commands, options."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tests.spark import cluster
from webui.cli import app

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KEYS = {
    "image", "build", "environment", "command", "secrets", "volumes", "ports", "depends_on", "deploy",
    "healthcheck", "restart",
}  # fmt: skip
GUIDE = (DEPLOY / "README.md").read_text(encoding="utf-8")


def check_command(words: list[str]) -> None:
    """The program takes these words: the command exists, and so does each option."""
    typer.main.get_command(app).make_context("loopledger", [*words[1:]]).close()
    command = typer.main.get_command(app)
    name = next(word for word in words[1:] if not word.startswith("-"))
    inner = command.get_command(None, name)  # type: ignore[attr-defined]
    assert inner is not None, name
    inner.make_context(name, words[words.index(name) + 1 :]).close()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_pinned_and_names_what_there_is(name: str) -> None:
    service = SERVICES[name]
    assert set(service) <= KEYS
    assert re.fullmatch(r"[\w-]+:\d+(\.\d+)+", service["image"])
    if (build := service.get("build")) is not None:
        assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()
    assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= set(COMPOSE["volumes"])
    assert set(service.get("depends_on", [])) <= set(SERVICES)
    assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_every_volume_and_secret_is_used() -> None:
    for kind in ("volumes", "secrets"):
        used = {one.partition(":")[0] for service in SERVICES.values() for one in service.get(kind, [])}
        assert used == set(COMPOSE[kind])


def test_the_program_is_started_with_options_that_it_has() -> None:
    service = SERVICES["loopledger"]
    check_command(service["command"])
    texts = (ROOT / "ledger").rglob("*.py")
    known = set(re.findall(r"LOOPLEDGER_[A-Z]+", "".join(path.read_text(encoding="utf-8") for path in texts)))
    ours = {name for name in service["environment"] if name.startswith("LOOPLEDGER_")}
    assert ours <= known
    home = service["environment"]["LOOPLEDGER_HOME"]
    readers = ("loopledger", "spark-worker", "spark-connect")
    mounts = [
        volume for reader in readers for volume in SERVICES[reader]["volumes"] if volume.startswith("lake:")
    ]
    assert [mount.split(":")[1] for mount in mounts] == [f"{home}/lake"] * len(readers)


def test_spark_is_started_as_the_tests_start_it() -> None:
    tested = Path(cluster.__file__).read_text(encoding="utf-8")
    for name in ("spark-master", "spark-worker", "spark-connect"):
        program, *words = SERVICES[name]["command"]
        assert f'"{program}"' in tested
        for word in words:
            if word.startswith("org.apache.spark."):
                assert word.removeprefix("org.apache.spark.deploy.") in tested
            elif word.startswith("--"):
                assert f'"{word}"' in tested
            elif word.startswith("spark."):
                assert f'"{word.partition("=")[0]}"' in tested


def test_pins_are_those_that_are_tested() -> None:
    spark = (DEPLOY / "spark.Dockerfile").read_text(encoding="utf-8")
    lock = (ROOT / "tests" / "spark" / "spark.lock").read_text(encoding="utf-8")
    pinned = re.search(r"^pyspark==(\S+)", lock, re.MULTILINE)
    assert pinned is not None
    assert f"'pyspark[connect]=={pinned[1]}'" in spark
    assert SERVICES["spark-master"]["image"].endswith(f":{pinned[1]}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert SERVICES["loopledger"]["image"] == f"loopledger:{project['version']}"
    extras = re.search(r"'\.\[(.+)\]'", (DEPLOY / "loopledger.Dockerfile").read_text(encoding="utf-8"))
    assert extras is not None
    assert set(extras[1].split(",")) <= set(project["optional-dependencies"])


def test_the_guide_s_commands_are_ones_that_there_are() -> None:
    lines = [
        line for block in re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL) for line in block.splitlines()
    ]
    asked = [
        shlex.split(line.partition("exec loopledger ")[2]) for line in lines if "exec loopledger " in line
    ]
    assert len(asked) == 3
    for words in asked:
        check_command(words)
    started = [line for line in lines if line.startswith("docker compose up")]
    assert started and all(
        f"--scale {name}=" in line for line in started for name in SERVICES if "worker" in name
    )
    made = set(re.findall(r"> secrets/(\w+)", GUIDE))
    assert made == {Path(secret["file"]).name for secret in COMPOSE["secrets"].values()}
