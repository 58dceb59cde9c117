UPDATE runs SET turn_user = 'prn_00000000000000bb', turn = 1 WHERE id = 'run_0a1b2c3d4e5f';
UPDATE turns SET n = 1 WHERE id = 1;
