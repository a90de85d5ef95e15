"""Where detectors are found, and whose file counts where two have one name."""

from pathlib import Path

import pytest

from ledger.audit import discover

QUERY = """-- title: One of my own
-- severity: high
-- why: I want to know.
-- misses: Much.
-- reads: events
-- source: me
select session, seq, type as message from events
"""
RULES = "rules:\n- name: any\n  title: Any call\n  severity: low\n  steps:\n  - call: '*'\n"


def in_home(home: Path, name: str) -> Path:
    """A file of the home."""
    path = home / ("rules" if name.endswith(".yaml") else "detectors") / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(RULES if name.endswith(".yaml") else QUERY)
    return path


@pytest.mark.parametrize("name", ["hijack.sql", "policy_order.yaml"])
def test_a_file_of_the_home_takes_the_place_of_no_shipped_detector(tmp_path: Path, name: str) -> None:
    """A home may lie in a directory that came from somebody else: it silences none of ours."""
    in_home(tmp_path, name)
    found = discover(tmp_path)
    assert found[Path(name).stem].digest == discover()[Path(name).stem].digest
    assert f"{name}:1: expected a name of its own" in str(found[name].broken)


def test_a_folder_that_the_user_names_may_do_so(tmp_path: Path) -> None:
    folder = in_home(tmp_path, "hijack.sql").parent
    assert discover(None, folder)["hijack"].title == "One of my own"


def test_a_detector_of_the_home_stands_beside_ours(tmp_path: Path) -> None:
    in_home(tmp_path, "mine.sql")
    in_home(tmp_path, "ours.yaml")
    found = discover(tmp_path)
    assert set(found) == {*discover(), "mine", "ours"}
    assert (found["mine"].is_own, found["mine"].broken, found["ours"].broken) == (True, None, None)


@pytest.mark.parametrize("name", ["two words.sql", "dotted.name.sql", "2nd.sql"])
def test_a_name_that_findings_could_not_carry_is_refused(tmp_path: Path, name: str) -> None:
    in_home(tmp_path, name)
    (broken,) = (one.broken for one in discover(tmp_path).values() if one.broken is not None)
    assert f"{name}:1: expected a file named with letters, digits, _ and -" in str(broken)
