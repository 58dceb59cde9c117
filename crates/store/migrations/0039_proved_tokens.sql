-- Whether a token was made by who had proved to be human. Of those that are there nobody knows.
ALTER TABLE service_tokens ADD COLUMN is_proved BIGINT NOT NULL DEFAULT 0;
