-- Pages with the events of one run take this index. By time, all newer events of the workspace
-- were read for those of an old run.
CREATE INDEX audit_events_by_run ON audit_events (workspace, run, happened_at, writer, seq);
