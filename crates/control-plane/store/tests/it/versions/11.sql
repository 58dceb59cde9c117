INSERT INTO call_counts (workspace, day, kind, name, calls)
    VALUES ('team', 20000, 'agent', 'reader', 7);
INSERT INTO workspace_limits (workspace, document, updated_at, updated_by)
    VALUES ('team', '{"calls_per_day":9}', 1790000000000, 'admin');
