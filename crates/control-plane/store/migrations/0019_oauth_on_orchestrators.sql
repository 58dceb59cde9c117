-- Whether agents that are no workers may have servers that each person signs in to: `off`,
-- `on_attended` or `on`.
ALTER TABLE workspaces ADD COLUMN oauth_on_orchestrators TEXT NOT NULL DEFAULT 'off';
