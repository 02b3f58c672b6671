-- The job table. One row says everything a person needs to know about one job.
create table if not exists jobs (
    id                 uuid        primary key,
    task               text        not null,
    args               jsonb       not null default '{}',
    state              text        not null default 'pending'
        check (state in ('pending', 'running', 'completed', 'failed', 'timed_out', 'cancelled', 'expired')),
    why                text,                               -- why it ended, in words for a person
    attempt            integer     not null default 0,     -- attempts started so far
    max_attempts       integer     not null default 1 check (max_attempts >= 1),
    soft_limit_seconds double precision check (soft_limit_seconds > 0),   -- of one attempt
    hard_limit_seconds double precision check (hard_limit_seconds > 0),   -- of one attempt
    lease_until        timestamptz,                        -- the attempt's owner vouches for it until then
    deadline_at        timestamptz,                        -- a moment, for all attempts together
    done               integer     not null default 0 check (done >= 0),
    total              integer     check (total >= 0),
    created_at         timestamptz not null default clock_timestamp(),
    started_at         timestamptz,                        -- of the latest attempt
    finished_at        timestamptz,
    check ((finished_at is not null) = (state in ('completed', 'failed', 'timed_out', 'cancelled', 'expired')))
);
create index if not exists jobs_open on jobs (state, started_at) where finished_at is null;
