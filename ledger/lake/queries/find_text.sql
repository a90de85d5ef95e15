-- title: Find a text
-- doc:   Messages, arguments and results that contain a text, whatever its case.
-- param: text text: what to look for
select
    session,
    seq,
    type,
    tool,
    content_field,
    substring(text, greatest(1, cast(instr(lower(text), lower($text)) as bigint) - 40), 120) as around
from events
where contains(lower(text), lower($text))
order by session, seq
