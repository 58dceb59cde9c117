INSERT INTO event_streams (workspace, session, oldest_seq, last_seq, last_at, bytes)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 2, 2, 1790000000000, 135);
INSERT INTO event_totals (workspace, last_number, bytes)
    VALUES ('team', 2, 135);
INSERT INTO session_events (workspace, session, seq, number, happened_at, kind, run, message_id, bytes, payload)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 2, 2, 1790000000000, 'user.message', 'run_0a1b2c3d4e5f', 'm1', 135, '{"a":1}');
UPDATE workspaces SET events_kept_days = 7 WHERE id = 'team';
