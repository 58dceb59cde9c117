-- Whether runs of a workspace may ask humans for grants (X-E80).
ALTER TABLE workspaces ADD COLUMN runtime_requests BIGINT NOT NULL DEFAULT 1;
