INSERT INTO agents (workspace, id, document, revision, created_at, updated_at, updated_by)
    VALUES ('team', 'reader', '{"name":"reader","active":true,"capabilities":["papers"]}', 3, 1790000000000, 1790000001000, 'admin');
INSERT INTO capabilities (workspace, id, document, revision, created_at, updated_at, updated_by)
    VALUES ('team', 'papers', '{"name":"papers","mcpServers":{"library":{"ref":"docs"}}}', 1, 1790000000000, 1790000000000, 'admin');
INSERT INTO mcp_servers (workspace, id, document, revision, created_at, updated_at, updated_by)
    VALUES ('team', 'docs', '{"id":"docs","name":"docs","type":"http","url":"https://docs.test/mcp"}', 2, 1790000000000, 1790000000000, 'admin');
