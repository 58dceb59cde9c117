-- Whether a token was made by who had proved to be human. Of those that are there nobody knows.
ALTER TABLE service_tokens ADD COLUMN is_proved BIGINT NOT NULL DEFAULT 0;

-- Those that wait for a decision, of all that there ever were.
CREATE INDEX grant_requests_waiting ON grant_requests (expires_at) WHERE status = 'pending';
