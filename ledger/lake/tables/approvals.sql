-- One row for each question before an action: what was asked, who decided what, and how often it was relied on.
select
    session,
    approval_id,
    min(seq) filter (type = 'approval.asked')                                 as asked_seq,
    max(seq) filter (type = 'approval.decided')                               as decided_seq,
    min(coalesce(occurred_at, recorded_at))                                   as happened_at,
    min_by(call_id, seq)                                                      as call_id,
    min_by(tool, seq)                                                         as tool,
    coalesce(max_by(outcome, seq) filter (type = 'approval.decided'), 'open') as outcome,
    max_by(decided_by, seq) filter (type = 'approval.decided')                as decided_by,
    max_by(decider, seq) filter (type = 'approval.decided')                   as decider,
    max_by(how, seq) filter (type = 'approval.decided')                       as how,
    max_by(scope, seq) filter (type = 'approval.decided')                     as scope,
    max_by(evidence, seq) filter (type = 'approval.decided')                  as evidence,
    min_by(policy_version, seq)                                               as policy_version,
    count(*) filter (type = 'approval.used')                                  as uses,
    min_by(text, seq) filter (type = 'approval.asked')                        as shown
from events
where type in ('approval.asked', 'approval.decided', 'approval.used')
group by session, approval_id
