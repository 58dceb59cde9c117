-- The models that runs of a workspace may ask for, as JSON, the newest first; empty if nothing is
-- checked.
ALTER TABLE workspaces ADD COLUMN models TEXT NOT NULL DEFAULT '';
