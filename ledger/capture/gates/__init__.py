"""Where a live loop may be stopped: questions that wait for a person, budgets, the hand brake. The ledger is the queue.

May import what captures may; imports nothing here, because the journal of a loop stands on one of its modules.
"""
