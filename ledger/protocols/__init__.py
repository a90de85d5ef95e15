"""The wire protocols of model providers: whose body it is, what a request and an answer are made of.

Capture, importers and the recording proxy read bodies through here, so that all of them give the same events.
"""
