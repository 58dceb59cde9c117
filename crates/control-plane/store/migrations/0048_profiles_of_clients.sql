-- The profile of the live configuration that a registered client sees; empty for a client of an
-- agent, and then `agent` is not empty.
ALTER TABLE mcp_clients ADD COLUMN profile TEXT NOT NULL DEFAULT '';
