"""Going back for real: effects, checkpoints, the plan of a rollback and its execution."""
