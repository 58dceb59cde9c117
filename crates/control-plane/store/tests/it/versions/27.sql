INSERT INTO workspace_rules (workspace, document, revision, updated_at, updated_by)
    VALUES ('team', 'forbid(principal, action, resource);', 1, 1790000000000, 'admin');
