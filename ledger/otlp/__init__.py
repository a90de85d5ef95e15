"""OpenTelemetry traces and logs of agents: bytes -> records -> facts -> items. Knows no file and no network.

For the importer, which reads files, and the receiver, which takes requests.
"""
