-- One row for each finding that was kept: which detector, how bad, what it says, and how a person judged it.
select
    session,
    finding_id,
    min(seq) filter (type = 'review.finding_raised')                 as seq,
    min(recorded_at)                                                 as happened_at,
    min_by(detector, position)                                       as detector,
    min_by(severity, position)                                       as severity,
    min_by(json_extract_string(payload, '$.witnesses'), position) filter (type = 'review.finding_raised') as witnesses,
    min_by(text, position) filter (type = 'review.finding_raised')   as message,
    max_by(verdict, position) filter (type = 'review.verdict_given') as verdict
from events
where type in ('review.finding_raised', 'review.verdict_given')
group by session, finding_id
