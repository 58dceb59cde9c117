UPDATE runs SET claimable = 1, claim = 'clm', claimed_by = 'svc', claimed_until = 1790000000000, model = 'm', runtime = 'r' WHERE id = 'run_0a1b2c3d4e5f';
INSERT INTO session_costs (workspace, session, id, model, input_tokens, output_tokens, cost, currency, reported_at, reported_by)
    VALUES ('team', 'ses_0a1b2c3d4e5f', 'u1', 'small', 10, 20, 300, 'EUR', 1790000000000, 'svc');
