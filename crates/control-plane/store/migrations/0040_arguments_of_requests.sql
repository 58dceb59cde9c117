-- With which arguments alone a run wants to be allowed something, for the humans who decide: the digest
-- in `details` is what counts. Empty if it has not said so.
ALTER TABLE grant_requests ADD COLUMN arguments TEXT NOT NULL DEFAULT '';
