PRAGMA application_id = 1852994680;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
INSERT INTO _sqlx_migrations VALUES(1,'workspaces','2026-11-22 05:00:00',1,X'73f5b828e6e3c685394b6d8bd411890324a956ce8d729a7af2ba23a2557ea4b0876d46198b6be3783efc98e9a30ce8b8',1000);
INSERT INTO _sqlx_migrations VALUES(2,'servers','2026-11-22 05:00:00',1,X'f3102a4f1d21cd7f566b932d7a1a787579c9cd57c70590578ad9c587b51bee46e73d0b4bc1104f9b99b2d2db935e50c3',1000);
INSERT INTO _sqlx_migrations VALUES(3,'trusted files','2026-11-22 05:00:00',1,X'264112585902f4827606aa4b55f334379c41012386c3b0e6502e3f8a50732d419b92b27352932de0d2aa3edbc0b860e4',1000);
INSERT INTO _sqlx_migrations VALUES(4,'secrets','2026-11-22 10:00:00',1,X'a188584f12be3bdf66444383b29880ad64ac7b276952de80c99ea5e1bf4a700fd0dccc921ca3e13d6d6bbb773f7d3608',1000);
INSERT INTO _sqlx_migrations VALUES(5,'catalog','2026-11-22 12:00:00',1,X'1f2786f99ade0868b5b28e89ce5b7db85279c020436f5c915764e617b51ef95dd30e3778d2199e2b8d1326638fe77c38',1000);
INSERT INTO _sqlx_migrations VALUES(6,'audit','2026-11-22 13:50:00',1,X'8a2461dc18af89aba3aaeeeff92c357cc59b6bd1bce3cc6e15ea175868d3354c90630c12180994f2163083b117026e1a',1000);
INSERT INTO _sqlx_migrations VALUES(7,'principals','2026-11-22 13:00:00',1,X'0a2605985a68ad959e9971fd9f7f52a41a48090aaacf35eea6329fe5ee5e90706105d7f79b9eb2443c360dbe727c72c6',1000);
INSERT INTO _sqlx_migrations VALUES(8,'runs','2026-11-22 12:00:00',1,X'4a9d7d87f6a4ebf993abdf9dd23a1047d564f58ad966d05b1bfb908c650ee8942413d07fc6f0738c53aebbf354e44926',1000);
INSERT INTO _sqlx_migrations VALUES(10,'logins','2026-11-22 13:30:00',1,X'8b32f22186629ee1ae1c35d928142651e141dac3fdb4a3772d9bdfa1a85912e51ee34fb8137ffbcf2a1bfc5f1f5d3bc4',1000);
INSERT INTO _sqlx_migrations VALUES(11,'traffic','2026-11-22 15:00:00',1,X'279b24ef51225fa808c6a0366bd1c6b6aa3fc9eac6fe1271afe4f658bd25ef2f57a45e51c65c71e822b0b324b8fa14da',1000);
INSERT INTO _sqlx_migrations VALUES(12,'sockets of runs','2026-11-22 16:30:00',1,X'31ff73108fb5fd8be0036552a96cb2d15d8e0b337db9243278e5e57deda36688b86d3573b0e32bdb00ccd25fb6545ae4',1000);
INSERT INTO _sqlx_migrations VALUES(13,'env bindings','2026-11-22 16:30:00',1,X'a9eebec97d594a3a45086c84a3304cced85fd8dedb24ac3e7c6462a6e5d2d69349fa238b0bec6b79245a0be44503336d',1000);
INSERT INTO _sqlx_migrations VALUES(14,'kept answers','2026-11-22 15:00:00',1,X'7655bb9e6400dc4fe5d0a2ea4e6a22c99d3c20790858c0af5bd7f0ac50efdc5da11f86a31fffacd58bd41fefe20f75df',100000);
INSERT INTO _sqlx_migrations VALUES(15,'audit contents','2026-11-22 20:30:00',1,X'ce676386117ed9706ebe8fdb0b224b2c1744e3d22e6526ad5bcab6f82bc5b0ad3ca983f813dcef1759272aac103a2439',100000);
INSERT INTO _sqlx_migrations VALUES(18,'grants','2026-11-22 22:00:00',1,X'5e76ec7458c666542940b4443c24094720a8570816e2694eec5aa336194a8d198270cd9e67443488d6755ca961b15d21',100000);
INSERT INTO _sqlx_migrations VALUES(19,'oauth on orchestrators','2026-11-22 22:10:00',1,X'1b9054c8383dd617584822d5d590b8d7343c8c665cafd1c3730260a378f9394566b66e9c1ce38819f01a6a36ab35e815',100000);
INSERT INTO _sqlx_migrations VALUES(20,'events','2026-11-23 00:20:00',1,X'f27d4168ccea620798819de9911bde7223be4e1ab458715a5e634145ebd376b59b7ea1c9fe0011acbda8c9343aac0b31',100000);
INSERT INTO _sqlx_migrations VALUES(22,'names of grant requests','2026-11-23 01:05:00',1,X'003ea7dee0a3054d8206bfa7df3418b280102520e056f9fca43244ced727c50b31589627936970ce89f396025a3abbd2',100000);
INSERT INTO _sqlx_migrations VALUES(26,'mcp clients','2026-11-23 01:30:00',1,X'9c74e5d020f44d1ad58dcf75786b70cd6e4e48f04d2e54b11cd681962d93914ece0ff52f9228be94ab67fdbb4ffaa2f3',100000);
INSERT INTO _sqlx_migrations VALUES(23,'definitions','2026-11-23 03:10:00',1,X'94ca519e1763e197f2585a49d999b9e5bfd7bf42b1abb313b104d8b2feb8a92b1c8ffadc59772c89f3f802cbd6d98792',100000);
INSERT INTO _sqlx_migrations VALUES(24,'children','2026-11-23 03:55:00',1,X'de35803cb15ca496cf73764f8ec4b41efbe7921e33da0154b7186e4ab55a9811f45e1bf717c7a9adf385a925d0bc6b5e',100000);
INSERT INTO _sqlx_migrations VALUES(27,'workspace rules','2026-11-23 02:55:00',1,X'784fbf76785447f68a3f99bab0d7dc30d25a6e3261c0add79e022380fccc950af23b39f40443b71001924a231257f4b8',100000);
INSERT INTO _sqlx_migrations VALUES(29,'executors','2026-11-23 07:00:00',1,X'3205ba1b1af88a2489c87b0c577732d874b001d0177ad65230fcac3cde140c39269a7b5aa47052b4abc335376aca1a53',100000);
INSERT INTO _sqlx_migrations VALUES(25,'shares','2026-11-23 04:50:00',1,X'15a006f59d972110b01f4e852c45f531b3b6abf6b2bff7817aef210e729d1f68418a675d942819075cbb991b74c897c0',100000);
INSERT INTO _sqlx_migrations VALUES(28,'outbound','2026-11-23 07:40:00',1,X'627bbb8fda1d6d2f23e840ab8f7a85a4e81563c9b8ac3a52909108f551a3cf691e9499a879a4a3c6213c07db8587bf65',100000);
INSERT INTO _sqlx_migrations VALUES(30,'models','2026-11-23 07:00:00',1,X'3a84d05ead1d55b03fbf6ff512170c0368db59306726adf0159ad992c3e7787b95abef5db05cb1821d0a919f10fc0fda',100000);
INSERT INTO _sqlx_migrations VALUES(31,'runtime requests','2026-11-23 07:30:00',1,X'7ca3935b8af5abd8ced1d4d70d424e3e6ee9de7ab66c2bb21b3355dd323b4379bba7b04cc8eb6ca7090a9ffdab94198b',100000);
INSERT INTO _sqlx_migrations VALUES(34,'resting sessions','2026-11-23 13:00:00',1,X'5102028a26afa1bbe78dd79749b556e8285bdfb83227e7e534321c864d5ddcd83c7500e6fb3d6b6fdfea2c33b6a71a2c',100000);
CREATE TABLE access_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);
INSERT INTO access_changes VALUES(1,3);
CREATE TABLE agents (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
);
INSERT INTO agents VALUES('team','reader','{"name":"reader","active":true,"capabilities":["papers"]}',3,1790000000000,1790000001000,'admin');
CREATE TABLE audit_chains (
    workspace TEXT NOT NULL,
    writer TEXT NOT NULL,
    base_seq BIGINT NOT NULL,
    base_hash TEXT NOT NULL,
    head_seq BIGINT NOT NULL,
    head_hash TEXT NOT NULL,
    key_id TEXT NOT NULL,
    seal TEXT NOT NULL,
    PRIMARY KEY (workspace, writer)
);
INSERT INTO audit_chains VALUES('team','n.1.a',0,'',1,'00ff','','');
CREATE TABLE audit_events (
    workspace TEXT NOT NULL,
    writer TEXT NOT NULL,
    seq BIGINT NOT NULL,
    happened_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    resource TEXT NOT NULL,
    run TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (workspace, writer, seq)
);
INSERT INTO audit_events VALUES('team','n.1.a',1,1790000000000,'workspace.secret.set','admin','TOKEN','','{"kind":"workspace.secret.set"}');
CREATE TABLE audit_settings (
    workspace TEXT NOT NULL PRIMARY KEY,
    kept_days BIGINT NOT NULL,
    kept_events BIGINT NOT NULL
);
INSERT INTO audit_settings VALUES('team',400,0);
CREATE TABLE call_counts (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (workspace, day, kind, name)
);
INSERT INTO call_counts VALUES('team',20000,'agent','reader',7);
CREATE TABLE capabilities (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
);
INSERT INTO capabilities VALUES('team','papers','{"name":"papers","mcpServers":{"library":{"ref":"docs"}}}',1,1790000000000,1790000000000,'admin');
CREATE TABLE channels (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    url TEXT NOT NULL,
    signing_key TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);
INSERT INTO channels VALUES('team','chat','slack','TOKEN','',1790000000000,'ada');
CREATE TABLE definitions (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    text TEXT NOT NULL,
    why TEXT NOT NULL,
    run TEXT NOT NULL,
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL,
    decided_at BIGINT NOT NULL,
    decided_by TEXT NOT NULL,
    PRIMARY KEY (workspace, server, digest),
    FOREIGN KEY (workspace, server) REFERENCES mcp_servers (workspace, id) ON DELETE CASCADE
);
INSERT INTO definitions VALUES('team','docs','abababababababababababababababababababababababababababababababab','tool','read_file','pinned','{"name":"read_file"}','{}','run_0a1b2c3d4e5f',1795312800000,1795312800000,0,'');
CREATE TABLE env_bindings (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    scope TEXT NOT NULL,
    scope_id TEXT NOT NULL,
    name TEXT NOT NULL,
    secret TEXT NOT NULL,
    agent TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, scope, scope_id, name),
    FOREIGN KEY (workspace, secret) REFERENCES secrets (workspace, name) ON DELETE CASCADE,
    FOREIGN KEY (workspace, agent) REFERENCES agents (workspace, id) ON DELETE CASCADE
);
INSERT INTO env_bindings VALUES('team','agent','reader','GITHUB_TOKEN','TOKEN','reader',1790000000000,1790000000000,'admin');
CREATE TABLE event_streams (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    oldest_seq BIGINT NOT NULL,
    last_seq BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    bytes BIGINT NOT NULL, own_at BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO event_streams VALUES('team','ses_0a1b2c3d4e5f',2,2,1790000000000,135,1790000000000);
CREATE TABLE event_totals (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    last_number BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);
INSERT INTO event_totals VALUES('team',2,135);
CREATE TABLE grant_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);
INSERT INTO grant_changes VALUES(1,1);
CREATE TABLE grant_requests (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    user_subject TEXT NOT NULL,
    agent_subject TEXT NOT NULL,
    grant_type TEXT NOT NULL,
    details TEXT NOT NULL,
    duration TEXT NOT NULL,
    reason TEXT NOT NULL,
    requested_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    decided_by TEXT NOT NULL,
    decision_reason TEXT NOT NULL,
    grant_id TEXT NOT NULL
, asked_as TEXT NOT NULL DEFAULT '');
CREATE TABLE grants (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    user_subject TEXT NOT NULL,
    agent_subject TEXT NOT NULL,
    grant_type TEXT NOT NULL,
    details TEXT NOT NULL,
    duration TEXT NOT NULL,
    run TEXT NOT NULL,
    session TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    reason TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    is_advisory BIGINT NOT NULL,
    consumed_at BIGINT NOT NULL,
    consumed_by TEXT NOT NULL,
    revoked_at BIGINT NOT NULL,
    revoked_by TEXT NOT NULL,
    change BIGINT NOT NULL
);
INSERT INTO grants VALUES('gra_0a1b2c3d4e5f6071','team','','reader','tool_scope','{"scope":"git.write"}','persistent','','',0,'why',1790000000000,'ada',1,0,'',0,'',1);
CREATE TABLE kept_answers (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT REFERENCES workspaces (id) ON DELETE CASCADE,
    claim TEXT NOT NULL,
    sealed TEXT NOT NULL,
    begun_at BIGINT NOT NULL
);
INSERT INTO kept_answers VALUES('0a1b','team','','c2VhbGVk',1790000000000);
CREATE TABLE login_sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    method TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
INSERT INTO login_sessions VALUES('h1','prn_00000000000000aa','passkey',1790000000000,1790000000000,9990000000000);
CREATE TABLE mcp_clients (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    agent TEXT NOT NULL,
    sealed TEXT NOT NULL,
    origins TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT NOT NULL
);
INSERT INTO mcp_clients VALUES('cli_00000000000000ee','team','prn_00000000000000dd','00ff','reader','c2VhbGVk','agent-produced imported','ses_0a1b2c3d4e5f','run_0a1b2c3d4e5f',1790000000000,'ada',1890000000000,0);
CREATE TABLE mcp_servers (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, id)
);
INSERT INTO mcp_servers VALUES('team','docs','{"id":"docs","name":"docs","type":"http","url":"https://docs.test/mcp"}',2,1790000000000,1790000000000,'admin');
CREATE TABLE memberships (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    PRIMARY KEY (workspace, principal, role)
);
INSERT INTO memberships VALUES('team','prn_00000000000000bb','runner',1790000000000,'ada');
CREATE TABLE oidc_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
INSERT INTO oidc_identities VALUES('https://id.example','s1','prn_00000000000000aa',1790000000000);
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    document TEXT NOT NULL,
    enrolled_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);
INSERT INTO passkeys VALUES('cred','prn_00000000000000aa','phone','{}','link',1790000000000,NULL);
CREATE TABLE principals (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    name TEXT NOT NULL UNIQUE,
    workspace TEXT REFERENCES workspaces (id) ON DELETE CASCADE,
    operator_since BIGINT,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    disabled_at BIGINT
);
INSERT INTO principals VALUES('prn_00000000000000aa','human','ada',NULL,1790000000000,1790000000000,'admin',NULL);
INSERT INTO principals VALUES('prn_00000000000000bb','service','team/ci','team',NULL,1790000000000,'ada',NULL);
INSERT INTO principals VALUES('prn_00000000000000dd','client','team/desktop','team',NULL,1790000000000,'ada',NULL);
CREATE TABLE run_counters (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    last_pid BIGINT NOT NULL
);
INSERT INTO run_counters VALUES('team',1);
CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    pid BIGINT NOT NULL,
    agent TEXT NOT NULL,
    parent TEXT NOT NULL,
    token TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    outcome TEXT NOT NULL, has_sockets BIGINT NOT NULL DEFAULT 0, agent_env TEXT NOT NULL DEFAULT '', driver TEXT NOT NULL DEFAULT '', claimable BIGINT NOT NULL DEFAULT 0, claim TEXT NOT NULL DEFAULT '', claimed_by TEXT NOT NULL DEFAULT '', claimed_until BIGINT NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '', runtime TEXT NOT NULL DEFAULT '', executor TEXT NOT NULL DEFAULT '', attempts BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO runs VALUES('run_0a1b2c3d4e5f','team','ses_0a1b2c3d4e5f',1,'reader','','00ff','c2VhbGVk',1790000000000,'admin',1890000000000,0,'',1,'GITHUB_TOKEN','',1,'clm','svc',1790000000000,'m','r','work',1);
CREATE TABLE secret_versions (
    workspace TEXT NOT NULL,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, name, version),
    FOREIGN KEY (workspace, name) REFERENCES secrets (workspace, name) ON DELETE CASCADE
);
INSERT INTO secret_versions VALUES('team','TOKEN',2,'00000000000000aa','c2VhbGVk',1790000000000);
CREATE TABLE secrets (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    last_version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);
INSERT INTO secrets VALUES('team','TOKEN',2,1790000000000,1790000000000,'admin');
CREATE TABLE seeded_defaults (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    seeded_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, name)
);
INSERT INTO seeded_defaults VALUES('default','fetch',1790000000000);
CREATE TABLE server_flags (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    is_disabled BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, server)
);
INSERT INTO server_flags VALUES('team','git',1,1790000000000);
INSERT INTO server_flags VALUES('team','memory',0,1790000000000);
CREATE TABLE service_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    hash TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT,
    last_used_at BIGINT
);
INSERT INTO service_tokens VALUES('tok_00000000000000cc','team','prn_00000000000000bb','00ff','build',1790000000000,'ada',1890000000000,NULL,1790000001000);
CREATE TABLE session_costs (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL,
    currency TEXT NOT NULL,
    reported_at BIGINT NOT NULL,
    reported_by TEXT NOT NULL,
    PRIMARY KEY (workspace, session, id),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO session_costs VALUES('team','ses_0a1b2c3d4e5f','u1','small',10,20,300,'EUR',1790000000000,'svc');
CREATE TABLE session_events (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    number BIGINT NOT NULL,
    happened_at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    run TEXT NOT NULL,
    message_id TEXT NOT NULL,
    bytes BIGINT NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (workspace, session, seq),
    FOREIGN KEY (workspace, session) REFERENCES event_streams (workspace, session) ON DELETE CASCADE
);
INSERT INTO session_events VALUES('team','ses_0a1b2c3d4e5f',2,2,1790000000000,'user.message','run_0a1b2c3d4e5f','m1',135,'{"a":1}');
CREATE TABLE sessions (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    id TEXT NOT NULL,
    agent TEXT NOT NULL,
    parent TEXT NOT NULL,
    depth BIGINT NOT NULL,
    sealed TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    ended_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, id)
);
INSERT INTO sessions VALUES('team','ses_0a1b2c3d4e5f','reader','',0,'c2VhbGVk',1790000000000,'admin',0);
CREATE TABLE share_comments (
    workspace TEXT NOT NULL,
    thread TEXT NOT NULL,
    number BIGINT NOT NULL,
    author TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, thread, number),
    FOREIGN KEY (workspace, thread) REFERENCES share_threads (workspace, id) ON DELETE CASCADE
);
INSERT INTO share_comments VALUES('team','thr_0a1b2c3d4e5f',1,'ada','well',1790000000000);
CREATE TABLE share_threads (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    share TEXT NOT NULL,
    anchor TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    resolved_at BIGINT NOT NULL,
    resolved_by TEXT NOT NULL,
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, share) REFERENCES shares (workspace, id) ON DELETE CASCADE
);
INSERT INTO share_threads VALUES('team','thr_0a1b2c3d4e5f','shr_0a1b2c3d4e5f','',1790000000000,0,'');
CREATE TABLE shared_files (
    workspace TEXT NOT NULL,
    share TEXT NOT NULL,
    path TEXT NOT NULL,
    size BIGINT NOT NULL,
    content_type TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (workspace, share, path),
    FOREIGN KEY (workspace, share) REFERENCES shares (workspace, id) ON DELETE CASCADE
);
INSERT INTO shared_files VALUES('team','shr_0a1b2c3d4e5f','a.csv',3,'text/csv; charset=utf-8','00ff');
CREATE TABLE shares (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    entry_point TEXT NOT NULL,
    total_size BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, id),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO shares VALUES('team','shr_0a1b2c3d4e5f','ses_0a1b2c3d4e5f','run_0a1b2c3d4e5f','Größe','csv','a.csv',3,1,1790000000000,1790000000000);
CREATE TABLE sign_in_links (
    hash TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
INSERT INTO sign_in_links VALUES('h2','prn_00000000000000aa',1790000000000,'admin',9990000000000);
CREATE TABLE trusted_files (
    place TEXT NOT NULL PRIMARY KEY,
    sha256 TEXT NOT NULL,
    approved_at BIGINT NOT NULL
);
INSERT INTO trusted_files VALUES('/a/mcp.json','00ff',1790000000000);
CREATE TABLE webhook_deliveries (
    workspace TEXT NOT NULL,
    webhook TEXT NOT NULL,
    number BIGINT NOT NULL,
    kind TEXT NOT NULL,
    outcome TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    detail TEXT NOT NULL,
    happened_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, webhook, number),
    FOREIGN KEY (workspace, webhook) REFERENCES webhooks (workspace, name) ON DELETE CASCADE
);
INSERT INTO webhook_deliveries VALUES('team','ops',7,'session.ended','delivered',2,'',1790000000000);
CREATE TABLE webhooks (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    signing_key TEXT NOT NULL,
    kinds TEXT NOT NULL,
    position BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);
INSERT INTO webhooks VALUES('team','ops','TOKEN','TOKEN','permission.granted session.ended',7,1,1790000000000,1790000000000,'ada');
CREATE TABLE workspace_limits (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
INSERT INTO workspace_limits VALUES('team','{"calls_per_day":9}',1790000000000,'admin');
CREATE TABLE workspace_rules (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
INSERT INTO workspace_rules VALUES('team','forbid(principal, action, resource);',1,1790000000000,'admin');
CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
, audits_contents BIGINT NOT NULL DEFAULT 0, oauth_on_orchestrators TEXT NOT NULL DEFAULT 'off', events_kept_days BIGINT NOT NULL DEFAULT 30, models TEXT NOT NULL DEFAULT '', runtime_requests BIGINT NOT NULL DEFAULT 1);
INSERT INTO workspaces VALUES('default','Default',0,'off',30,'',1);
INSERT INTO workspaces VALUES('team','Größe',1,'on_attended',7,'[{"id":"m5","short_names":["m"]}]',0);
CREATE TABLE resting_sessions (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    run TEXT NOT NULL,
    sealed TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO resting_sessions VALUES('team','ses_0a1b2c3d4e5f','run_0a1b2c3d4e5f','c2VhbGVk',1790000000000,2);
CREATE TABLE executor_workspaces (
    holder TEXT NOT NULL,
    executor TEXT NOT NULL,
    workspace TEXT NOT NULL,
    served_until BIGINT NOT NULL,
    PRIMARY KEY (holder, executor, workspace)
);
INSERT INTO executor_workspaces VALUES('executor-0a1b','claude','team',1790000000000);
CREATE INDEX audit_events_by_time ON audit_events (workspace, happened_at, writer, seq);
CREATE INDEX secret_versions_by_key ON secret_versions (key_id);
CREATE UNIQUE INDEX runs_by_pid ON runs (workspace, pid);
CREATE INDEX runs_by_session ON runs (workspace, session);
CREATE INDEX runs_by_end ON runs (ended_at, id);
CREATE INDEX call_counts_by_day ON call_counts (day);
CREATE INDEX kept_answers_by_time ON kept_answers (begun_at);
CREATE INDEX grants_by_workspace ON grants (workspace, id);
CREATE INDEX grants_by_change ON grants (change);
CREATE INDEX grant_requests_by_workspace ON grant_requests (workspace, id);
CREATE INDEX grant_requests_by_run ON grant_requests (run);
CREATE UNIQUE INDEX session_events_by_number ON session_events (workspace, number);
CREATE UNIQUE INDEX session_events_by_message
    ON session_events (workspace, session, kind, message_id) WHERE message_id <> '';
CREATE UNIQUE INDEX definitions_pinned ON definitions (workspace, server, kind, name)
    WHERE state = 'pinned';
CREATE INDEX sessions_by_parent ON sessions (workspace, parent);
CREATE INDEX runs_by_executor ON runs (executor, ended_at, claimed_until);
CREATE INDEX share_threads_by_share ON share_threads (workspace, share);
CREATE INDEX resting_sessions_by_time ON resting_sessions (due_at);
COMMIT;
