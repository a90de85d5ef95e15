-- One row for each finding that was kept: which detector, how bad, what it says, and how a person judged it.
select
    session,
    finding_id,
    min(seq) filter (type = 'review.finding_raised')                                as seq,
    min(recorded_at)                                                                as happened_at,
    any_value(detector)                                                             as detector,
    any_value(severity)                                                             as severity,
    any_value(json_extract(payload, '$.witnesses')) filter (type = 'review.finding_raised') as witnesses,
    any_value(text) filter (type = 'review.finding_raised')                         as message,
    max_by(verdict, position) filter (type = 'review.verdict_given')                as verdict
from events
where type in ('review.finding_raised', 'review.verdict_given')
group by session, finding_id
