UPDATE grant_changes SET n = 1 WHERE id = 1;
INSERT INTO grants (id, workspace, user_subject, agent_subject, grant_type, details, duration, run, session, expires_at, reason, granted_at, granted_by, is_advisory, consumed_at, consumed_by, revoked_at, revoked_by, change)
    VALUES ('gra_0a1b2c3d4e5f6071', 'team', '', 'reader', 'tool_scope', '{"scope":"git.write"}', 'persistent', '', '', 0, 'why', 1790000000000, 'ada', 1, 0, '', 0, '', 1);
