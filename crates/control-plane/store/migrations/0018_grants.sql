-- What humans allow users and agents to do, and what runs have asked for. What was granted never
-- changes; whether it still counts does. A text that does not apply is empty, and a time that has
-- not come is 0. `change` is the number of the row's last change, so that other daemons notice.
-- Times are milliseconds since 1970.
CREATE TABLE grants (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_subject TEXT NOT NULL,
    agent_subject TEXT NOT NULL,
    grant_type TEXT NOT NULL,
    details TEXT NOT NULL,
    duration TEXT NOT NULL,
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    is_advisory BIGINT NOT NULL,
    consumed_at BIGINT NOT NULL,
    consumed_by TEXT NOT NULL,
    revoked_at BIGINT NOT NULL,
    revoked_by TEXT NOT NULL,
    change BIGINT NOT NULL
);

CREATE INDEX grants_by_workspace ON grants (workspace, id);
CREATE INDEX grants_by_change ON grants (change);

CREATE TABLE grant_requests (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    user_subject TEXT NOT NULL,
    agent_subject TEXT NOT NULL,
    grant_type TEXT NOT NULL,
    details TEXT NOT NULL,
    duration TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    decided_by TEXT NOT NULL,
    decision_reason TEXT NOT NULL,
    grant_id TEXT NOT NULL
);

CREATE INDEX grant_requests_by_workspace ON grant_requests (workspace, id);
CREATE INDEX grant_requests_by_run ON grant_requests (run);

-- Grows with every change of a grant.
CREATE TABLE grant_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);

INSERT INTO grant_changes (id, n) VALUES (1, 0);

-- The human who drives a run; empty if none does.
ALTER TABLE runs ADD COLUMN driver TEXT NOT NULL DEFAULT '';
