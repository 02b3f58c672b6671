-- name: add
-- A new job, pending.
insert into jobs (id, task, args, max_attempts, soft_limit_seconds, hard_limit_seconds, deadline_at, total)
values (%(id)s, %(task)s, %(args)s, %(max_attempts)s, %(soft_limit_seconds)s, %(hard_limit_seconds)s,
        %(deadline_at)s, %(total)s)
returning *;

-- name: get
-- One job, or no row.
select * from jobs where id = %(id)s;

-- name: list
-- Every job, oldest first.
select * from jobs order by created_at, id;

-- name: newest
-- The jobs that were added last, oldest of them first.
select * from (select * from jobs order by created_at desc, id desc limit %(limit)s) as newest
 order by created_at, id;

-- name: now
-- The clock that every moment in the rows comes from.
select clock_timestamp() as now;

-- name: start
-- Pending to running; the winner gets the row, everybody else gets none. Counts the attempt in the same statement,
-- so that a message delivered twice can not run twice and can not run for ever.
update jobs
   set state = 'running', attempt = attempt + 1, started_at = clock_timestamp(),
       lease_until = clock_timestamp() + make_interval(secs => %(lease_seconds)s)
 where id = %(id)s and state = 'pending' and attempt < max_attempts
returning *;

-- name: finish
-- An open job to a terminal state, once: the state it may come from is part of the statement.
update jobs
   set state = %(state)s, why = %(why)s, finished_at = clock_timestamp(), lease_until = null
 where id = %(id)s and state = any(%(sources)s)
returning *;

-- name: release
-- An attempt is over and another will follow: running back to pending.
update jobs
   set state = 'pending', why = %(why)s, lease_until = null
 where id = %(id)s and state = 'running' and attempt < max_attempts
returning *;

-- name: progress
-- How far the running attempt got. A row that is not running any more is left alone.
update jobs
   set done = %(done)s, total = coalesce(%(total)s, total)
 where id = %(id)s and state = 'running'
returning *;

-- name: stuck
-- Running for longer than its own hard limit: no attempt can still be alive. A job without a hard limit is judged by
-- its soft one, and one without either by the age given.
select * from jobs
 where state = 'running'
   and started_at + make_interval(secs => coalesce(hard_limit_seconds, soft_limit_seconds, %(otherwise_seconds)s))
     + make_interval(secs => %(grace_seconds)s) < clock_timestamp()
 order by started_at, id;

-- name: counts
-- How many jobs stand in each state.
select state, count(*)::int as jobs from jobs group by state order by state;
