-- The audit. `document` is an event as its writer wrote it, with its hash; what stands beside it is
-- for looking up. An empty workspace is the installation. No row refers to another table: what was
-- done outlives what it was done to. Times are milliseconds since 1970.
CREATE TABLE audit_events (
    workspace TEXT NOT NULL,
    writer TEXT NOT NULL,
    seq BIGINT NOT NULL,
    happened_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    resource TEXT NOT NULL,
    run TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (workspace, writer, seq)
);

CREATE INDEX audit_events_by_time ON audit_events (workspace, happened_at, writer, seq);

-- Where each chain begins, as far as it was not removed because of its age, and where it ends; and
-- what a key of the installation makes of that.
CREATE TABLE audit_chains (
    workspace TEXT NOT NULL,
    writer TEXT NOT NULL,
    base_seq BIGINT NOT NULL,
    base_hash TEXT NOT NULL,
    head_seq BIGINT NOT NULL,
    head_hash TEXT NOT NULL,
    key_id TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (workspace, writer)
);

-- How long events of a workspace are kept; 0 is for ever.
CREATE TABLE audit_settings (
    workspace TEXT NOT NULL PRIMARY KEY,
    kept_days BIGINT NOT NULL,
    kept_events BIGINT NOT NULL
);
