-- Whether a run has Unix sockets: 1 if it has, so that they are made again when the daemon starts.
ALTER TABLE runs ADD COLUMN has_sockets BIGINT NOT NULL DEFAULT 0;
