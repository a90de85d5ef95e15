"""The wire protocols, one file each; a protocol knows how to read a request and write an answer.

Nothing here opens a connection or keeps state.
"""

from . import anthropic, chat, gemini, responses
from .reply import Reply, WireProtocol

PROTOCOLS: tuple[WireProtocol, ...] = (anthropic, responses, chat, gemini)

__all__ = ["PROTOCOLS", "Reply", "WireProtocol"]
