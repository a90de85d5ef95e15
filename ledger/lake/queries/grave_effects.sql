-- title: Grave tool calls
-- doc:   Calls that reach outside, use a secret or have no return, and who says so; `inferred` errs to the graver side.
-- param: class text = irreversible: external, credential or irreversible
select
    session,
    requested_seq as seq,
    happened_at,
    tool,
    effect_class,
    effect_said_by,
    outcome,
    arguments
from tool_calls
where effect_class = $class
order by happened_at desc nulls last, session, seq
