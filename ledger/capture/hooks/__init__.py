"""Hooks into agent frameworks, a module for each; whoever uses one imports that module, and nobody else does.

`_run` is what all of them stand on; its docstring says how to write another. No hook imports an importer.
"""
