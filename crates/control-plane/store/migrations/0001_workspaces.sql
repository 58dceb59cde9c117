-- The tenants. `default` is there from the start.
CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
);

INSERT INTO workspaces (id, name) VALUES ('default', 'Default');
