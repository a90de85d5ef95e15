"""One detector a file, found by discovery. May import ledger.audit, ledger.effects and ledger.events.

A `.sql` file: a head of comment lines, then one `select` over the lake's tables.

    -- title:    Tool call that never settled
    -- severity: high
    -- why:      An effect may have happened that nobody saw the result of.
    -- misses:   Calls whose request was not logged.
    -- reads:    tool_calls
    -- source:   Where the idea comes from.
    -- level:    trajectory             (or: action, where one action alone shows it)
    -- state:    on                     (or: experimental, while it does not beat its trivial baseline)
    -- live:     yes                    (or: no, where it compares sessions: live, only those that run are seen)

`reads` names tables. Where it names events as well (`tool_calls, session.ended`), the answer rests on these and on
those of the tables alone: while sessions run, it is asked when one of them comes, and not at each record.

It gives `session`, `seq`, `message` and may give `witnesses` (a list of seqs), `elsewhere` (a list of `SESSION#SEQ`),
`severity`, `part` and `key`: see `Found`. A `.py` file has the same as constants TITLE, SEVERITY, WHY, MISSES, READS
(the event classes that its fold wants), SOURCE, LEVEL, EXPERIMENTAL, and `start(given)`, which begins a fold over one
session. A name with a leading underscore is no detector.

`<id>.yaml`: rules over sequences, each rule one suspicion `id.rule`: see `ledger.audit.rules` and README.md.
"""
