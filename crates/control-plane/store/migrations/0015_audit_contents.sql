-- Whether the audit of a workspace has what calls carry, their arguments and answers: 1 if it has.
ALTER TABLE workspaces ADD COLUMN audits_contents BIGINT NOT NULL DEFAULT 0;
