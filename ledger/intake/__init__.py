"""The way in for records of others: what importers and receivers hand over is recorded once, whoever comes first.

For importers, captures, and the formats that both of them read. Knows no format and no file.
"""

from ledger.intake.desk import Desk, Item, Known, Tally
from ledger.intake.intake import Intake

__all__ = ["Desk", "Intake", "Item", "Known", "Tally"]
