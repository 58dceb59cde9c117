-- Searches for active runs of a session take this index. With an index by session and one by end,
-- SQLite took the one by end, and read all active runs for each session.
CREATE INDEX runs_by_session_and_end ON runs (workspace, session, ended_at);
DROP INDEX runs_by_session;
