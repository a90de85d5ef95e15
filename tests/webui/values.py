"""Values for the parameters of pages, so that tests can ask for every page. A new parameter is a new line here."""

VALUES = {
    "seq": "20",
    "approval": "question-1",
    "job": "latest",
    "finding": "finding-1",
    "constraint": "1",
    "rule": "duplicated_effect",
}
"""Parameters in the path of an address; `session` is filled in by the tests."""

QUERY = {
    "path": "arguments",
}
"""Parameters of the query that a page cannot do without."""
