"""The files of a lake as tables of other formats, without copying them, and its mirror elsewhere: an extra each."""

from ledger.lake.publish.formats import FORMATS, publish, push

__all__ = ["FORMATS", "publish", "push"]
