INSERT INTO live_definitions (place, server, digest, kind, name, state, text, why, run, first_seen,
    last_seen, decided_at, decided_by)
    VALUES ('/a/mcp.json', 'docs', 'd1', 'tool', 'one', 'accepted', '{}', '{}', 'run_0a1b2c3d4e5f',
    1790000000000, 1790000000000, 1790000000000, 'ada');
