-- What a run calls its request for a grant, by which it knows the decision; empty if it gave none.
ALTER TABLE grant_requests ADD COLUMN asked_as TEXT NOT NULL DEFAULT '';
