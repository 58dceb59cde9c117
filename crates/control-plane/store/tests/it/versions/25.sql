INSERT INTO share_comments (workspace, thread, number, author, text, created_at)
    VALUES ('team', 'thr_0a1b2c3d4e5f', 1, 'ada', 'well', 1790000000000);
INSERT INTO share_threads (workspace, id, share, anchor, created_at, resolved_at, resolved_by)
    VALUES ('team', 'thr_0a1b2c3d4e5f', 'shr_0a1b2c3d4e5f', '', 1790000000000, 0, '');
INSERT INTO shared_files (workspace, share, path, size, content_type, hash)
    VALUES ('team', 'shr_0a1b2c3d4e5f', 'a.csv', 3, 'text/csv; charset=utf-8', '00ff');
INSERT INTO shares (workspace, id, session, run, title, kind, entry_point, total_size, revision, created_at, updated_at)
    VALUES ('team', 'shr_0a1b2c3d4e5f', 'ses_0a1b2c3d4e5f', 'run_0a1b2c3d4e5f', 'Größe', 'csv', 'a.csv', 3, 1, 1790000000000, 1790000000000);
