-- Limits of traffic of whole workspaces; `document` is their JSON in its normal form. Those of
-- servers and agents stand in their own documents.
CREATE TABLE workspace_limits (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);

-- How many calls there were on a day, which is counted from 1970 in UTC, of what kind of thing, and
-- of which. Rows of long gone days are removed.
CREATE TABLE call_counts (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (workspace, day, kind, name)
);

CREATE INDEX call_counts_by_day ON call_counts (day);
