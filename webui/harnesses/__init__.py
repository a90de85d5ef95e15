"""One module for each harness: how to know its command, point it at a base URL, and find its log. May import
`webui.surroundings`, which says what a module offers and finds them.
"""
