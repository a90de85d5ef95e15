"""What the importers of Python frameworks share. Knows no format; may be imported by importers alone."""
