"""How each harness is recognised and pointed at a base URL, without touching its user's files."""

import json
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import InputError
from webui.surroundings import PLACEHOLDER, Surroundings, discover, surroundings

BASE = "http://127.0.0.1:9/run/r"


def around(
    tmp_path: Path, *command: str, given: dict[str, str] | None = None, **options: Any
) -> Surroundings:
    """Surroundings for a command in an empty home."""
    folder, home = tmp_path / "folder", tmp_path / "home"
    folder.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    environ = {"HOME": str(home), **(given or {})}
    return surroundings(command, BASE, folder, environ=environ, cwd=tmp_path, **options)


@pytest.mark.parametrize(
    ("command", "harness"),
    [
        ("claude -p hi", "claude-code"),
        ("npx -y @anthropic-ai/claude-code@2.1.332 -p hi", "claude-code"),
        ("/opt/x/claude --version", "claude-code"),
        ("env A=1 timeout 60 claude", "claude-code"),
        ("codex exec hi", "codex"),
        ("node /x/node_modules/@openai/codex/bin/codex.js exec", "codex"),
        ("npx @openai/codex exec hi", "codex"),
        ("dsh headless hi", "deepseek-harness"),
        ("opencode run hi", "opencode"),
        ("bunx opencode-ai run hi", "opencode"),
        ("pi -p hi", "pi"),
        ("node /x/@mariozechner/pi-coding-agent/dist/cli.js -p hi", "pi"),
        ("python my_agent.py claude", "generic"),
        ("sh -c claude", "generic"),
    ],
)
def test_a_harness_is_recognised_by_its_program(tmp_path: Path, command: str, harness: str) -> None:
    assert around(tmp_path, *command.split()).harness == harness


def test_every_harness_of_the_importers_can_be_named() -> None:
    assert set(discover()) == {
        "claude-code",
        "codex",
        "deepseek-harness",
        "gemini-cli",
        "generic",
        "opencode",
        "pi",
    }


def test_any_sdk_finds_its_endpoint_in_the_environment(tmp_path: Path) -> None:
    found = around(tmp_path, "python", "agent.py").environment
    assert (found["ANTHROPIC_BASE_URL"], found["OPENAI_BASE_URL"], found["GOOGLE_GEMINI_BASE_URL"]) == (
        BASE,
        f"{BASE}/v1",
        BASE,
    )
    assert "OPENAI_API_KEY" not in found


def test_a_replay_has_placeholders_for_missing_keys_and_folders_of_its_own(tmp_path: Path) -> None:
    given = {"OPENAI_API_KEY": "mine", "CODEX_HOME": "/elsewhere", "XDG_DATA_HOME": "/data"}
    found = around(tmp_path, "codex", "exec", given=given, is_replay=True).environment
    assert found["OPENAI_API_KEY"] == "mine"
    assert found["CODEX_HOME"] == str(tmp_path / "home" / ".codex")
    assert found["XDG_DATA_HOME"] == str(tmp_path / "home" / ".local/share")
    assert around(tmp_path, "claude", is_replay=True).environment["ANTHROPIC_API_KEY"] == PLACEHOLDER


def test_codex_is_told_on_its_command_line(tmp_path: Path) -> None:
    found = around(tmp_path, "npx", "@openai/codex", "exec", "hi", given={"OPENAI_API_KEY": "k"})
    assert found.command[:4] == ["npx", "@openai/codex", "-c", 'model_provider="loopledger"']
    assert found.command[-2:] == ["exec", "hi"]
    assert f'base_url="{BASE}/v1"' in found.command[5]
    assert 'env_key="OPENAI_API_KEY"' in found.command[5]
    assert "requires_openai_auth=true" in around(tmp_path, "codex").command[4]


def test_a_provider_of_the_users_own_codex_keeps_all_but_its_address(tmp_path: Path) -> None:
    settings = tmp_path / "home" / ".codex" / "config.toml"
    settings.parent.mkdir(parents=True)
    text = 'model_provider = "azure"\n[model_providers.azure]\nbase_url = "https://az.example/openai/v1"\n'
    settings.write_text(text)
    found = around(tmp_path, "codex", "exec")
    assert found.command == ["codex", "-c", f'model_providers.azure.base_url="{BASE}/v1"', "exec"]
    assert found.upstreams == ("openai=https://az.example/openai/v1",)
    assert settings.read_text() == text


def test_codex_behind_a_script_cannot_be_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected its program in the command itself, found 'make'"):
        around(tmp_path, "make", "agent", harness="codex")
    assert around(tmp_path, "make", "agent", harness="claude-code").harness == "claude-code"


def test_opencode_gets_a_configuration_over_the_users(tmp_path: Path) -> None:
    options = {"baseURL": "https://llm.example/v1", "apiKey": "k"}
    (tmp_path / "opencode.json").write_text(json.dumps({"provider": {"mine": {"options": options}}}))
    found = around(tmp_path, "opencode", "run")
    providers = json.loads(found.environment["OPENCODE_CONFIG_CONTENT"])["provider"]
    assert {name: one["options"]["baseURL"] for name, one in providers.items()} == {
        "anthropic": f"{BASE}/v1",
        "openai": f"{BASE}/v1",
        "google": f"{BASE}/v1beta",
        "mine": f"{BASE}/v1",
    }
    assert found.upstreams == ("openai=https://llm.example/v1",)


def test_pi_gets_an_extension_that_lives_as_long_as_it_does(tmp_path: Path) -> None:
    models = tmp_path / "home" / ".pi" / "agent" / "models.json"
    models.parent.mkdir(parents=True)
    models.write_text(
        json.dumps({"providers": {"mine": {"baseUrl": "https://x.example", "api": "anthropic-messages"}}})
    )
    found = around(tmp_path, "pi", "-p", "hi")
    assert found.command == ["pi", "--extension", str(tmp_path / "folder" / "loopledger.ts"), "-p", "hi"]
    told = (tmp_path / "folder" / "loopledger.ts").read_text()
    assert f'pi.registerProvider("mine", {{ baseUrl: "{BASE}" }});' in told
    assert f'pi.registerProvider("openai", {{ baseUrl: "{BASE}/v1" }});' in told
    assert found.upstreams == ("anthropic=https://x.example",)


def test_gemini_needs_a_key_by_setting(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only where its settings say so"):
        around(tmp_path, "gemini", "-p", "hi")
    found = around(tmp_path, "gemini", "-p", "hi", is_replay=True)
    assert found.environment["GEMINI_API_KEY"] == PLACEHOLDER
    assert "gemini-api-key" in (tmp_path / "home" / ".gemini" / "settings.json").read_text()
    assert around(tmp_path, "gemini").environment["GOOGLE_GEMINI_BASE_URL"] == BASE


def test_damaged_settings_of_a_user_are_the_harness_own_affair(tmp_path: Path) -> None:
    for path in (".codex/config.toml", ".config/opencode/opencode.json", ".pi/agent/models.json"):
        file = tmp_path / "home" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"\xff{not = [")
    for program in ("codex", "opencode", "pi"):
        assert around(tmp_path, program).harness == program


def test_logs_are_looked_for_where_the_environment_puts_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert around(tmp_path, "claude").logs == (home / ".claude" / "projects",)
    assert around(tmp_path, "claude", given={"CLAUDE_CONFIG_DIR": "/c"}).logs == (Path("/c/projects"),)
    assert around(tmp_path, "codex").logs == (home / ".codex" / "sessions",)
    assert around(tmp_path, "opencode").logs == (home / ".local" / "share" / "opencode" / "opencode.db",)


def test_a_replay_takes_settings_along_but_no_credentials_and_no_logs(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    for path in (".codex/config.toml", ".codex/AGENTS.md", ".codex/auth.json", ".codex/sessions/a.jsonl"):
        (mine / path).parent.mkdir(parents=True, exist_ok=True)
        (mine / path).write_text("model = 'x'\n")
    around(tmp_path, "codex", "exec", is_replay=True)
    assert not (tmp_path / "home" / ".codex").exists()
    around(tmp_path, "codex", "exec", is_replay=True, settings_of=mine)
    copied = tmp_path / "home" / ".codex"
    assert {path.name for path in copied.iterdir()} == {"config.toml", "AGENTS.md"}
    elsewhere = {"CODEX_HOME": str(mine / "other")}
    (mine / "other" / "prompts").mkdir(parents=True)
    around(tmp_path, "codex", "exec", is_replay=True, settings_of=mine, given=elsewhere)
    assert (copied / "prompts").is_dir()
