INSERT INTO principals (id, kind, name, workspace, operator_since, created_at, created_by, disabled_at)
    VALUES ('prn_00000000000000aa', 'human', 'ada', NULL, 1790000000000, 1790000000000, 'admin', NULL);
INSERT INTO principals (id, kind, name, workspace, operator_since, created_at, created_by, disabled_at)
    VALUES ('prn_00000000000000bb', 'service', 'team/ci', 'team', NULL, 1790000000000, 'ada', NULL);
INSERT INTO memberships (workspace, principal, role, granted_at, granted_by)
    VALUES ('team', 'prn_00000000000000bb', 'runner', 1790000000000, 'ada');
INSERT INTO service_tokens (id, workspace, principal, hash, label, created_at, created_by, expires_at, revoked_at, last_used_at)
    VALUES ('tok_00000000000000cc', 'team', 'prn_00000000000000bb', '00ff', 'build', 1790000000000, 'ada', 1890000000000, NULL, 1790000001000);
UPDATE access_changes SET n = 3 WHERE id = 1;
