"""The ledger's own acts, and source records that carry no loop action."""

from typing import Literal

from ledger.events.record import ContentRef, Event


class Imported(Event, name="ledger.imported"):
    """A file was imported."""

    file: str
    """The file as named."""

    format: str
    """The importer."""

    report: ContentRef
    """The import report."""


class FilesGiven(Event, name="ledger.files_given"):
    """A person gave files to the pages to be imported; the `ledger.imported` records tell what came of each."""

    files: tuple[str, ...]
    """Their names, as kept."""

    size: int
    """Bytes in all."""


class SourceKept(Event, name="ledger.source_kept", ignorable=True):
    """A source record that carries no loop action of ours, kept whole."""

    native_type: str
    """Its type in the source's words."""

    recognized: bool
    """False when the importer does not know this type."""

    body: ContentRef
    """The record."""


class Sealed(Event, name="ledger.sealed"):
    """A signed head of the whole ledger was written."""

    size: int
    """Records under the seal."""

    root: str
    """RFC 9162 tree head, hexadecimal."""

    note: ContentRef
    """The signed checkpoint."""


class Erased(Event, name="ledger.erased"):
    """Content was destroyed on purpose; the records that name it stay."""

    digests: tuple[str, ...]
    """Blobs destroyed."""

    reason: str
    """Legal or other ground."""

    how: Literal["blob_destroyed", "key_destroyed"] = "blob_destroyed"
    """By what means."""


class Retained(Event, name="ledger.retained"):
    """A retention rule was applied."""

    rule: str
    """The rule."""

    until: str | None = None
    """RFC 3339 time until which the records are kept."""


class Exported(Event, name="ledger.exported"):
    """Records were exported to the lake or a bundle."""

    to: str
    """Where to."""

    last_position: int
    """Last position in the export."""

    digest: str | None = None
    """SHA-256 of the manifest."""
