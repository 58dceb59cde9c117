INSERT INTO channels (workspace, name, provider, url, signing_key, updated_at, updated_by)
    VALUES ('team', 'chat', 'slack', 'TOKEN', '', 1790000000000, 'ada');
INSERT INTO webhook_deliveries (workspace, webhook, number, kind, outcome, attempts, detail, happened_at)
    VALUES ('team', 'ops', 7, 'session.ended', 'delivered', 2, '', 1790000000000);
INSERT INTO webhooks (workspace, name, url, signing_key, kinds, position, attempts, due_at, updated_at, updated_by)
    VALUES ('team', 'ops', 'TOKEN', 'TOKEN', 'permission.granted session.ended', 7, 1, 1790000000000, 1790000000000, 'ada');
