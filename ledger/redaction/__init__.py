"""Takes secrets out of text, JSON, headers and bodies before anything is hashed or written.

The recorder and all paths into it may import this; it knows nothing of events and stores. The marker
left behind,
`[redacted:<kind>:<digest><check>]`, tells two equal secrets from two different ones, to holders of the same
ledger key only. The check proves that this ledger made it: what a source wrote in that form itself is taken out
like a secret, so that nobody can say in our name that a secret was there, or which.
"""

from ledger.redaction.findings import Finding
from ledger.redaction.redactor import Redactor
from ledger.redaction.rules import Rule

__all__ = ["Finding", "Redactor", "Rule"]
