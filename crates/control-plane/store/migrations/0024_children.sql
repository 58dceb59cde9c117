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

-- What runs of sessions have used, as whoever carries them out says it. `id` is chosen by whoever
-- reports: the same twice is one. `cost` is in millionths of `currency`.
CREATE TABLE session_costs (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    currency TEXT NOT NULL,
    reported_at BIGINT NOT NULL,
    reported_by TEXT NOT NULL,
    PRIMARY KEY (workspace, session, id),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
