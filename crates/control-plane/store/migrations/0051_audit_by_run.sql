-- Pages with the events of one run take this index. By time, all newer events of the workspace
-- were read for those of an old run. No two workspaces have a run of the same id.
CREATE INDEX audit_events_by_run ON audit_events (run, happened_at, writer, seq);
