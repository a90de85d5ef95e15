"""The file part of the OTLP importer: encodings of files, and which files belong together."""
