"""A run of the OpenAI Agents SDK, recorded by the proxy and replayed in a fresh process without a model."""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frameworks.openai_agents.test_openai_agents import config_of, desk_of, order, script
from tests.frameworks.replayed import check_replay
from tests.frameworks.shop import Shop


@pytest.mark.parametrize("way", ["whole", "streamed"])
@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_every_request_is_answered_from_the_record(tmp_path: Path, kind: str, way: str) -> None:
    check_replay(__name__, tmp_path, script(), kind, way)


if __name__ == "__main__":
    url, kind, way = sys.argv[1:]
    server: Any = SimpleNamespace(url=url)
    config = config_of(server, kind, tracing_disabled=True)
    print(json.dumps(asyncio.run(order(desk_of(Shop(), None), config, None, stream=way == "streamed"))))
