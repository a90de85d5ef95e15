-- One row for each question before an action: what was asked, who decided what, and how often it was relied on.
select
    session,
    approval_id,
    min(seq) filter (type = 'approval.asked')                              as asked_seq,
    max(seq) filter (type = 'approval.decided')                            as decided_seq,
    min(coalesce(occurred_at, recorded_at))                                as happened_at,
    any_value(call_id)                                                     as call_id,
    any_value(tool)                                                        as tool,
    coalesce(max_by(outcome, seq) filter (type = 'approval.decided'), 'open') as outcome,
    max_by(decided_by, seq) filter (type = 'approval.decided')             as decided_by,
    max_by(decider, seq) filter (type = 'approval.decided')                as decider,
    max_by(how, seq) filter (type = 'approval.decided')                    as how,
    max_by(scope, seq) filter (type = 'approval.decided')                  as scope,
    max_by(evidence, seq) filter (type = 'approval.decided')               as evidence,
    any_value(policy_version)                                              as policy_version,
    count(*) filter (type = 'approval.used')                               as uses,
    any_value(text) filter (type = 'approval.asked')                       as shown
from events
where type in ('approval.asked', 'approval.decided', 'approval.used')
group by session, approval_id
