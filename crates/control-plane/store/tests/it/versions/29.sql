UPDATE runs SET executor = 'work', attempts = 1 WHERE id = 'run_0a1b2c3d4e5f';
