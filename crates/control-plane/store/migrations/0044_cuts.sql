-- What was taken away from runs that there are: a secret that was cleared, a server of the catalog
-- that was switched off. Of each thing the last time alone: `change` is the number of that, so that
-- other daemons notice. `version` is the last value of the secret that was cleared. A thing of a
-- workspace that is gone needs no row: its runs are gone with it.
CREATE TABLE cuts (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    change BIGINT NOT NULL,
    PRIMARY KEY (workspace, kind, name)
);

CREATE INDEX cuts_by_change ON cuts (change);

-- Grows with every cut.
CREATE TABLE cut_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);

INSERT INTO cut_changes (id, n) VALUES (1, 0);
