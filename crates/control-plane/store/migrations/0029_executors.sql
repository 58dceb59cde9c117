-- Which executor of a daemon carries a run out; empty if that is left to others. `attempts` is how
-- often somebody has claimed the run.
ALTER TABLE runs ADD COLUMN executor TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0;

CREATE INDEX runs_by_executor ON runs (executor, ended_at, claimed_until);
