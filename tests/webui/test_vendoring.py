"""htmx comes by our digests, or not at all."""

import io
import tarfile
from pathlib import Path

import pytest

from webui import vendoring


def packed(folder: Path, body: bytes) -> Path:
    """A package whose files all hold the same."""
    path = folder / "package.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name in vendoring.wanted()["files"]:
            told = tarfile.TarInfo(f"package/{name}")
            told.size = len(body)
            archive.addfile(told, io.BytesIO(body))
    return path


def test_a_file_with_another_digest_is_not_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendoring, "VENDOR", tmp_path / "vendor")
    monkeypatch.setattr(vendoring, "_packed", lambda *_: packed(tmp_path, b"alert(1)"))
    with pytest.raises(vendoring.VendoringError, match="expected SHA-256"):
        vendoring.fetch()
    assert list((tmp_path / "vendor").iterdir()) == []


def test_a_file_that_is_not_in_the_package_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vendoring, "VENDOR", tmp_path / "vendor")
    with tarfile.open(tmp_path / "empty.tgz", "w:gz"):
        pass
    monkeypatch.setattr(vendoring, "_packed", lambda *_: tmp_path / "empty.tgz")
    with pytest.raises(vendoring.VendoringError):
        vendoring.fetch()


def test_without_npm_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendoring, "npm", lambda: None)
    with pytest.raises(vendoring.VendoringError, match="there is no npm"):
        vendoring.fetch()
