"""Mechanics of the OTLP importer: bytes -> records -> facts -> items. Only the file part knows files."""
