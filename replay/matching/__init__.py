"""Says whether two model requests are the same: canonical forms by named rules, lanes, keys. Knows no store."""

from replay.matching.canonical import Canonical, canonical
from replay.matching.lanes import Lane
from replay.matching.request import ModelRequest, model_request, read_request
from replay.matching.rules import Folders

__all__ = ["Canonical", "Folders", "Lane", "ModelRequest", "canonical", "model_request", "read_request"]
