INSERT INTO audit_events (workspace, writer, seq, happened_at, kind, actor, resource, run, document)
    VALUES ('team', 'n.1.a', 1, 1790000000000, 'workspace.secret.set', 'admin', 'TOKEN', '', '{"kind":"workspace.secret.set"}');
INSERT INTO audit_chains (workspace, writer, base_seq, base_hash, head_seq, head_hash, key_id, seal)
    VALUES ('team', 'n.1.a', 0, '', 1, '00ff', '', '');
INSERT INTO audit_settings (workspace, kept_days, kept_events)
    VALUES ('team', 400, 0);
