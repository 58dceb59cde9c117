-- The files of folders that their user has approved, by place, with the SHA-256 of their content.
CREATE TABLE trusted_files (
    place TEXT NOT NULL PRIMARY KEY,
    sha256 TEXT NOT NULL,
    approved_at BIGINT NOT NULL
);
