"""Records runs of others while they happen: a harness's hooks, and pass-throughs between two programs.

Each tap writes a session of its own, whose id extends the one that the source gives its session; `joining` links it
to what an import or a proxy tells of the same run. May import what captures may; never an importer.
"""
