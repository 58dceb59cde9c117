-- Runs that somebody else carries out than whoever began them. Such a run is `claimable`; it waits
-- until somebody claims it, and again once the claim is over at `claimed_until`. `claim` is the id of
-- the claim, `claimed_by` who made it, and `model` and `runtime` are what was asked for. A text that
-- does not apply is empty. Times are milliseconds since 1970, and one that has not come is 0.
ALTER TABLE runs ADD COLUMN claimable BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN claim TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN claimed_by TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN claimed_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN runtime TEXT NOT NULL DEFAULT '';

CREATE INDEX sessions_by_parent ON sessions (workspace, parent);
