INSERT INTO oauth_grants VALUES
    ('team', 'docs', '', 1, 'c2VhbGVk', 'https://as.example', 'read write', 1790003600, 1,
    1790000000, 0, '', '', 0, 1790000000000, 1790000000000, 1);
UPDATE oauth_changes SET n = 1 WHERE id = 1;
INSERT INTO oauth_clients VALUES
    ('team', 'https://as.example', 'http://127.0.0.1:1', 'c2VhbGVk', 1790000000000);
INSERT INTO oauth_attempts VALUES
    ('h4', 'team', 'docs', '', 'c2VhbGVk', 1790000000000, 1790000600000);
