"""Records what goes through a proxy: exchanges in, records out. Knows no server and no client of HTTP.

May import what captures may; the proxy of `webui` hands it what goes by.
"""

from ledger.capture.proxy.live import LiveExchange
from ledger.capture.proxy.run import About
from ledger.capture.proxy.runs import Runs

__all__ = ["About", "LiveExchange", "Runs"]
