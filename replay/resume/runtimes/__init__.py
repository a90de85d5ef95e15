"""One file per runtime that can go on from a point, found by discovery: what to write is in `Runtime`."""
