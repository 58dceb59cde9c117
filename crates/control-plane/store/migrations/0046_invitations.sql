-- Whether a sign-in link was made by a human who had proved to be one: such a link adds a passkey
-- where others add none. Links that exist already are not.
ALTER TABLE sign_in_links ADD COLUMN is_invitation BIGINT NOT NULL DEFAULT 0;
