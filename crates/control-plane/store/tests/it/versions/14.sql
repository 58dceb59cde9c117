INSERT INTO kept_answers (id, workspace, claim, sealed, begun_at)
    VALUES ('0a1b', 'team', '', 'c2VhbGVk', 1790000000000);
