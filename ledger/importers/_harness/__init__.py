"""What the importers of harness logs share: values read with care, lines read with damage, the story of a session.

Knows no format. May be imported by importers alone.
"""
