"""A crew, recorded by the proxy and replayed in a fresh process without a model."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.frameworks import shop as checks
from tests.frameworks.crewai.test_crewai import DELEGATE, house_of, model_of
from tests.frameworks.replayed import check_replay
from tests.frameworks.shop import Shop


@pytest.mark.parametrize("way", ["whole", "streamed"])
def test_every_request_is_answered_from_the_record(tmp_path: Path, way: str) -> None:
    check_replay(__name__, tmp_path, checks.script(expert=DELEGATE, thanks=False), "chat", way)


if __name__ == "__main__":
    os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
    url, _, way = sys.argv[1:]
    server: Any = SimpleNamespace(url=url)
    crew = house_of(Shop(), model_of(server, is_streamed=way == "streamed"))
    print(json.dumps(crew.kickoff().raw))
