"""Tests, in the folders of the sources that they test; promises that cross them stand here."""
