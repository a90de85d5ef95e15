"""An ADK app, recorded by the proxy and replayed in a fresh process without a model."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frameworks.google_adk.test_google_adk import ShowErrors, Talk, script
from tests.frameworks.replayed import check_replay
from tests.frameworks.shop import Shop


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_every_request_is_answered_from_the_record(tmp_path: Path, way: str) -> None:
    check_replay(__name__, tmp_path, script(), "gemini", way)


if __name__ == "__main__":
    url, _, way = sys.argv[1:]
    server: Any = SimpleNamespace(url=url)
    talk = Talk(server, Shop(), [ShowErrors(name="errors")], stream=way == "streamed")
    print(json.dumps(asyncio.run(talk.order())))
