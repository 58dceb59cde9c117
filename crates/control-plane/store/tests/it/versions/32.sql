INSERT INTO inboxes (workspace, session, acknowledged)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 0);
