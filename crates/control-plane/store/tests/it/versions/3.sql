INSERT INTO trusted_files (place, sha256, approved_at)
    VALUES ('/a/mcp.json', '00ff', 1790000000000);
