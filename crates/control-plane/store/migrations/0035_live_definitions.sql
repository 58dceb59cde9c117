-- The same as `definitions` of servers of live configurations, whose entries ask for it. They are in
-- no catalog: `place` is the file that the entry is from, and `server` its alias there. They stay when
-- the entry goes, since it may come back.
CREATE TABLE live_definitions (
    place TEXT NOT NULL,
    server TEXT NOT NULL,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT NOT NULL,
    why TEXT NOT NULL,
    run TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    decided_at BIGINT NOT NULL,
    decided_by TEXT NOT NULL,
    PRIMARY KEY (place, server, digest)
);

-- Of one name one text alone is taken without being asked about, whoever comes at the same time.
CREATE UNIQUE INDEX live_definitions_pinned ON live_definitions (place, server, kind, name)
    WHERE state = 'pinned';
