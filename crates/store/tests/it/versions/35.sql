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
INSERT INTO "_sqlx_migrations" VALUES(1,'workspaces','2026-11-22 05:00:00',1,X'73F5B828E6E3C685394B6D8BD411890324A956CE8D729A7AF2BA23A2557EA4B0876D46198B6BE3783EFC98E9A30CE8B8',1000);
INSERT INTO "_sqlx_migrations" VALUES(2,'servers','2026-11-22 05:00:00',1,X'F3102A4F1D21CD7F566B932D7A1A787579C9CD57C70590578AD9C587B51BEE46E73D0B4BC1104F9B99B2D2DB935E50C3',1000);
INSERT INTO "_sqlx_migrations" VALUES(3,'trusted files','2026-11-22 05:00:00',1,X'264112585902F4827606AA4B55F334379C41012386C3B0E6502E3F8A50732D419B92B27352932DE0D2AA3EDBC0B860E4',1000);
INSERT INTO "_sqlx_migrations" VALUES(4,'secrets','2026-11-22 10:00:00',1,X'A188584F12BE3BDF66444383B29880AD64AC7B276952DE80C99EA5E1BF4A700FD0DCCC921CA3E13D6D6BBB773F7D3608',1000);
INSERT INTO "_sqlx_migrations" VALUES(5,'catalog','2026-11-22 12:00:00',1,X'1F2786F99ADE0868B5B28E89CE5B7DB85279C020436F5C915764E617B51EF95DD30E3778D2199E2B8D1326638FE77C38',1000);
INSERT INTO "_sqlx_migrations" VALUES(6,'audit','2026-11-22 13:50:00',1,X'8A2461DC18AF89ABA3AAEEEFF92C357CC59B6BD1BCE3CC6E15EA175868D3354C90630C12180994F2163083B117026E1A',1000);
INSERT INTO "_sqlx_migrations" VALUES(7,'principals','2026-11-22 13:00:00',1,X'0A2605985A68AD959E9971FD9F7F52A41A48090AAACF35EEA6329FE5EE5E90706105D7F79B9EB2443C360DBE727C72C6',1000);
INSERT INTO "_sqlx_migrations" VALUES(8,'runs','2026-11-22 12:00:00',1,X'4A9D7D87F6A4EBF993ABDF9DD23A1047D564F58AD966D05B1BFB908C650EE8942413D07FC6F0738C53AEBBF354E44926',1000);
INSERT INTO "_sqlx_migrations" VALUES(10,'logins','2026-11-22 13:30:00',1,X'8B32F22186629EE1AE1C35D928142651E141DAC3FDB4A3772D9BDFA1A85912E51EE34FB8137FFBCF2A1BFC5F1F5D3BC4',1000);
INSERT INTO "_sqlx_migrations" VALUES(11,'traffic','2026-11-22 15:00:00',1,X'279B24EF51225FA808C6A0366BD1C6B6AA3FC9EAC6FE1271AFE4F658BD25EF2F57A45E51C65C71E822B0B324B8FA14DA',1000);
INSERT INTO "_sqlx_migrations" VALUES(12,'sockets of runs','2026-11-22 16:30:00',1,X'31FF73108FB5FD8BE0036552A96CB2D15D8E0B337DB9243278E5E57DEDA36688B86D3573B0E32BDB00CCD25FB6545AE4',1000);
INSERT INTO "_sqlx_migrations" VALUES(13,'env bindings','2026-11-22 16:30:00',1,X'A9EEBEC97D594A3A45086C84A3304CCED85FD8DEDB24AC3E7C6462A6E5D2D69349FA238B0BEC6B79245A0BE44503336D',1000);
INSERT INTO "_sqlx_migrations" VALUES(14,'kept answers','2026-11-22 15:00:00',1,X'7655BB9E6400DC4FE5D0A2EA4E6A22C99D3C20790858C0AF5BD7F0AC50EFDC5DA11F86A31FFFACD58BD41FEFE20F75DF',100000);
INSERT INTO "_sqlx_migrations" VALUES(15,'audit contents','2026-11-22 20:30:00',1,X'CE676386117ED9706EBE8FDB0B224B2C1744E3D22E6526AD5BCAB6F82BC5B0AD3CA983F813DCEF1759272AAC103A2439',100000);
INSERT INTO "_sqlx_migrations" VALUES(18,'grants','2026-11-22 22:00:00',1,X'5E76EC7458C666542940B4443C24094720A8570816E2694EEC5AA336194A8D198270CD9E67443488D6755CA961B15D21',100000);
INSERT INTO "_sqlx_migrations" VALUES(19,'oauth on orchestrators','2026-11-22 22:10:00',1,X'1B9054C8383DD617584822D5D590B8D7343C8C665CAFD1C3730260A378F9394566B66E9C1CE38819F01A6A36AB35E815',100000);
INSERT INTO "_sqlx_migrations" VALUES(20,'events','2026-11-23 00:20:00',1,X'F27D4168CCEA620798819DE9911BDE7223BE4E1AB458715A5E634145EBD376B59B7EA1C9FE0011ACBDA8C9343AAC0B31',100000);
INSERT INTO "_sqlx_migrations" VALUES(22,'names of grant requests','2026-11-23 01:05:00',1,X'003EA7DEE0A3054D8206BFA7DF3418B280102520E056F9FCA43244CED727C50B31589627936970CE89F396025A3ABBD2',100000);
INSERT INTO "_sqlx_migrations" VALUES(26,'mcp clients','2026-11-23 01:30:00',1,X'9C74E5D020F44D1AD58DCF75786B70CD6E4E48F04D2E54B11CD681962D93914ECE0FF52F9228BE94AB67FDBB4FFAA2F3',100000);
INSERT INTO "_sqlx_migrations" VALUES(23,'definitions','2026-11-23 03:10:00',1,X'94CA519E1763E197F2585A49D999B9E5BFD7BF42B1ABB313B104D8B2FEB8A92B1C8FFADC59772C89F3F802CBD6D98792',100000);
INSERT INTO "_sqlx_migrations" VALUES(24,'children','2026-11-23 03:55:00',1,X'DE35803CB15CA496CF73764F8EC4B41EFBE7921E33DA0154B7186E4AB55A9811F45E1BF717C7A9ADF385A925D0BC6B5E',100000);
INSERT INTO "_sqlx_migrations" VALUES(27,'workspace rules','2026-11-23 02:55:00',1,X'784FBF76785447F68A3F99BAB0D7DC30D25A6E3261C0ADD79E022380FCCC950AF23B39F40443B71001924A231257F4B8',100000);
INSERT INTO "_sqlx_migrations" VALUES(29,'executors','2026-11-23 07:00:00',1,X'3205BA1B1AF88A2489C87B0C577732D874B001D0177AD65230FCAC3CDE140C39269A7B5AA47052B4ABC335376ACA1A53',100000);
INSERT INTO "_sqlx_migrations" VALUES(25,'shares','2026-11-23 04:50:00',1,X'15A006F59D972110B01F4E852C45F531B3B6ABF6B2BFF7817AEF210E729D1F68418A675D942819075CBB991B74C897C0',100000);
INSERT INTO "_sqlx_migrations" VALUES(28,'outbound','2026-11-23 07:40:00',1,X'627BBB8FDA1D6D2F23E840AB8F7A85A4E81563C9B8AC3A52909108F551A3CF691E9499A879A4A3C6213C07DB8587BF65',100000);
INSERT INTO "_sqlx_migrations" VALUES(30,'models','2026-11-23 07:00:00',1,X'3A84D05EAD1D55B03FBF6FF512170C0368DB59306726ADF0159AD992C3E7787B95ABEF5DB05CB1821D0A919F10FC0FDA',100000);
INSERT INTO "_sqlx_migrations" VALUES(31,'runtime requests','2026-11-23 07:30:00',1,X'7CA3935B8AF5ABD8CED1D4D70D424E3E6EE9DE7AB66C2BB21B3355DD323B4379BBA7B04CC8EB6CA7090A9FFDAB94198B',100000);
INSERT INTO "_sqlx_migrations" VALUES(32,'inboxes','2026-11-23 12:30:00',1,X'A645242C871DA759EA865D9FAC31D01A1795419CC11C0F490BC8F6F57C2B0CA287B729F725A9540CD5B9E308E15D43F3',100000);
INSERT INTO "_sqlx_migrations" VALUES(33,'turns','2026-11-23 13:00:00',1,X'ED3CD1F8E6066949E87D5C5DF3441FAC98238EC34647952DA6CD960A2286A6863F093444656119F9D2585B4E61382640',100000);
INSERT INTO "_sqlx_migrations" VALUES(34,'resting sessions','2026-11-23 13:00:00',1,X'5102028A26AFA1BBE78DD79749B556E8285BDFB83227E7E534321C864D5DDCD83C7500E6FB3D6B6FDFEA2C33B6A71A2C',100000);
INSERT INTO "_sqlx_migrations" VALUES(35,'live definitions','2026-11-23 16:30:00',1,X'1947C2FD3A1FBD702090BE9F77C647865A2AC64DE6AE2EABC5B4EE6974A6863D5AA3FBEA7FE00DA79F22CE14C084973A',100000);
CREATE TABLE access_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);
INSERT INTO "access_changes" VALUES(1,3);
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
INSERT INTO "agents" VALUES('team','reader','{"name":"reader","active":true,"capabilities":["papers"]}',3,1790000000000,1790000001000,'admin');
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
INSERT INTO "audit_chains" VALUES('team','n.1.a',0,'',1,'00ff','','');
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
INSERT INTO "audit_events" VALUES('team','n.1.a',1,1790000000000,'workspace.secret.set','admin','TOKEN','','{"kind":"workspace.secret.set"}');
CREATE TABLE audit_settings (
    workspace TEXT NOT NULL PRIMARY KEY,
    kept_days BIGINT NOT NULL,
    kept_events BIGINT NOT NULL
);
INSERT INTO "audit_settings" VALUES('team',400,0);
CREATE TABLE call_counts (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    day BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    calls BIGINT NOT NULL,
    PRIMARY KEY (workspace, day, kind, name)
);
INSERT INTO "call_counts" VALUES('team',20000,'agent','reader',7);
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
INSERT INTO "capabilities" VALUES('team','papers','{"name":"papers","mcpServers":{"library":{"ref":"docs"}}}',1,1790000000000,1790000000000,'admin');
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
INSERT INTO "channels" VALUES('team','chat','slack','TOKEN','',1790000000000,'ada');
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
INSERT INTO "definitions" VALUES('team','docs','abababababababababababababababababababababababababababababababab','tool','read_file','pinned','{"name":"read_file"}','{}','run_0a1b2c3d4e5f',1795312800000,1795312800000,0,'');
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
INSERT INTO "env_bindings" VALUES('team','agent','reader','GITHUB_TOKEN','TOKEN','reader',1790000000000,1790000000000,'admin');
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
INSERT INTO "event_streams" VALUES('team','ses_0a1b2c3d4e5f',2,2,1790000000000,135,1790000000000);
CREATE TABLE event_totals (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    last_number BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);
INSERT INTO "event_totals" VALUES('team',2,135);
CREATE TABLE executor_workspaces (
    holder TEXT NOT NULL,
    executor TEXT NOT NULL,
    workspace TEXT NOT NULL,
    served_until BIGINT NOT NULL,
    PRIMARY KEY (holder, executor, workspace)
);
INSERT INTO "executor_workspaces" VALUES('executor-0a1b','claude','team',1790000000000);
CREATE TABLE grant_changes (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);
INSERT INTO "grant_changes" VALUES(1,1);
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
INSERT INTO "grants" VALUES('gra_0a1b2c3d4e5f6071','team','','reader','tool_scope','{"scope":"git.write"}','persistent','','',0,'why',1790000000000,'ada',1,0,'',0,'',1);
CREATE TABLE inboxes (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    acknowledged BIGINT NOT NULL,
    PRIMARY KEY (workspace, session),
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO "inboxes" VALUES('team','ses_0a1b2c3d4e5f',0);
CREATE TABLE kept_answers (
    id TEXT NOT NULL PRIMARY KEY,
    workspace TEXT REFERENCES workspaces (id) ON DELETE CASCADE,
    claim TEXT NOT NULL,
    sealed TEXT NOT NULL,
    begun_at BIGINT NOT NULL
);
INSERT INTO "kept_answers" VALUES('0a1b','team','','c2VhbGVk',1790000000000);
CREATE TABLE live_definitions (
    place TEXT NOT NULL,
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
    PRIMARY KEY (place, server, digest)
);
INSERT INTO "live_definitions" VALUES('/a/mcp.json','docs','d1','tool','one','accepted','{}','{}','run_0a1b2c3d4e5f',1790000000000,1790000000000,1790000000000,'ada');
CREATE TABLE login_sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    method TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
INSERT INTO "login_sessions" VALUES('h1','prn_00000000000000aa','passkey',1790000000000,1790000000000,9990000000000);
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
INSERT INTO "mcp_clients" VALUES('cli_00000000000000ee','team','prn_00000000000000dd','00ff','reader','c2VhbGVk','agent-produced imported','ses_0a1b2c3d4e5f','run_0a1b2c3d4e5f',1790000000000,'ada',1890000000000,0);
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
INSERT INTO "mcp_servers" VALUES('team','docs','{"id":"docs","name":"docs","type":"http","url":"https://docs.test/mcp"}',2,1790000000000,1790000000000,'admin');
CREATE TABLE memberships (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    granted_at BIGINT NOT NULL,
    granted_by TEXT NOT NULL,
    PRIMARY KEY (workspace, principal, role)
);
INSERT INTO "memberships" VALUES('team','prn_00000000000000bb','runner',1790000000000,'ada');
CREATE TABLE oidc_identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (issuer, subject)
);
INSERT INTO "oidc_identities" VALUES('https://id.example','s1','prn_00000000000000aa',1790000000000);
CREATE TABLE passkeys (
    id TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    label TEXT NOT NULL,
    document TEXT NOT NULL,
    enrolled_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT
);
INSERT INTO "passkeys" VALUES('cred','prn_00000000000000aa','phone','{}','link',1790000000000,NULL);
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
INSERT INTO "principals" VALUES('prn_00000000000000aa','human','ada',NULL,1790000000000,1790000000000,'admin',NULL);
INSERT INTO "principals" VALUES('prn_00000000000000bb','service','team/ci','team',NULL,1790000000000,'ada',NULL);
INSERT INTO "principals" VALUES('prn_00000000000000dd','client','team/desktop','team',NULL,1790000000000,'ada',NULL);
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
INSERT INTO "resting_sessions" VALUES('team','ses_0a1b2c3d4e5f','run_0a1b2c3d4e5f','c2VhbGVk',1790000000000,2);
CREATE TABLE run_counters (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    last_pid BIGINT NOT NULL
);
INSERT INTO "run_counters" VALUES('team',1);
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
    outcome TEXT NOT NULL, has_sockets BIGINT NOT NULL DEFAULT 0, agent_env TEXT NOT NULL DEFAULT '', driver TEXT NOT NULL DEFAULT '', claimable BIGINT NOT NULL DEFAULT 0, claim TEXT NOT NULL DEFAULT '', claimed_by TEXT NOT NULL DEFAULT '', claimed_until BIGINT NOT NULL DEFAULT 0, model TEXT NOT NULL DEFAULT '', runtime TEXT NOT NULL DEFAULT '', executor TEXT NOT NULL DEFAULT '', attempts BIGINT NOT NULL DEFAULT 0, turn_user TEXT NOT NULL DEFAULT '', turn BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (workspace, session) REFERENCES sessions (workspace, id) ON DELETE CASCADE
);
INSERT INTO "runs" VALUES('run_0a1b2c3d4e5f','team','ses_0a1b2c3d4e5f',1,'reader','','00ff','c2VhbGVk',1790000000000,'admin',1890000000000,0,'',1,'GITHUB_TOKEN','',1,'clm','svc',1790000000000,'m','r','work',1,'prn_00000000000000bb',1);
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
INSERT INTO "secret_versions" VALUES('team','TOKEN',2,'00000000000000aa','c2VhbGVk',1790000000000);
CREATE TABLE secrets (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    last_version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL,
    PRIMARY KEY (workspace, name)
);
INSERT INTO "secrets" VALUES('team','TOKEN',2,1790000000000,1790000000000,'admin');
CREATE TABLE seeded_defaults (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    seeded_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, name)
);
INSERT INTO "seeded_defaults" VALUES('default','fetch',1790000000000);
CREATE TABLE server_flags (
    workspace TEXT NOT NULL REFERENCES workspaces (id) ON DELETE CASCADE,
    server TEXT NOT NULL,
    is_disabled BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, server)
);
INSERT INTO "server_flags" VALUES('team','git',1,1790000000000);
INSERT INTO "server_flags" VALUES('team','memory',0,1790000000000);
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
INSERT INTO "service_tokens" VALUES('tok_00000000000000cc','team','prn_00000000000000bb','00ff','build',1790000000000,'ada',1890000000000,NULL,1790000001000);
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
INSERT INTO "session_costs" VALUES('team','ses_0a1b2c3d4e5f','u1','small',10,20,300,'EUR',1790000000000,'svc');
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
INSERT INTO "session_events" VALUES('team','ses_0a1b2c3d4e5f',2,2,1790000000000,'user.message','run_0a1b2c3d4e5f','m1',135,'{"a":1}');
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
INSERT INTO "sessions" VALUES('team','ses_0a1b2c3d4e5f','reader','',0,'c2VhbGVk',1790000000000,'admin',0);
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
INSERT INTO "share_comments" VALUES('team','thr_0a1b2c3d4e5f',1,'ada','well',1790000000000);
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
INSERT INTO "share_threads" VALUES('team','thr_0a1b2c3d4e5f','shr_0a1b2c3d4e5f','',1790000000000,0,'');
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
INSERT INTO "shared_files" VALUES('team','shr_0a1b2c3d4e5f','a.csv',3,'text/csv; charset=utf-8','00ff');
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
INSERT INTO "shares" VALUES('team','shr_0a1b2c3d4e5f','ses_0a1b2c3d4e5f','run_0a1b2c3d4e5f','Größe','csv','a.csv',3,1,1790000000000,1790000000000);
CREATE TABLE sign_in_links (
    hash TEXT NOT NULL PRIMARY KEY,
    principal TEXT NOT NULL REFERENCES principals (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
INSERT INTO "sign_in_links" VALUES('h2','prn_00000000000000aa',1790000000000,'admin',9990000000000);
CREATE TABLE trusted_files (
    place TEXT NOT NULL PRIMARY KEY,
    sha256 TEXT NOT NULL,
    approved_at BIGINT NOT NULL
);
INSERT INTO "trusted_files" VALUES('/a/mcp.json','00ff',1790000000000);
CREATE TABLE turns (
    id BIGINT NOT NULL PRIMARY KEY,
    n BIGINT NOT NULL
);
INSERT INTO "turns" VALUES(1,1);
CREATE TABLE unread_messages (
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    sender TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    tellings BIGINT NOT NULL,
    due_at BIGINT NOT NULL,
    PRIMARY KEY (workspace, session, seq),
    FOREIGN KEY (workspace, session, seq)
        REFERENCES session_events (workspace, session, seq) ON DELETE CASCADE
);
INSERT INTO "unread_messages" VALUES('team','ses_0a1b2c3d4e5f',2,'',0,0,0);
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
INSERT INTO "webhook_deliveries" VALUES('team','ops',7,'session.ended','delivered',2,'',1790000000000);
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
INSERT INTO "webhooks" VALUES('team','ops','TOKEN','TOKEN','permission.granted session.ended',7,1,1790000000000,1790000000000,'ada');
CREATE TABLE workspace_limits (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
INSERT INTO "workspace_limits" VALUES('team','{"calls_per_day":9}',1790000000000,'admin');
CREATE TABLE workspace_rules (
    workspace TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id) ON DELETE CASCADE,
    document TEXT NOT NULL,
    revision BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    updated_by TEXT NOT NULL
);
INSERT INTO "workspace_rules" VALUES('team','forbid(principal, action, resource);',1,1790000000000,'admin');
CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL
, audits_contents BIGINT NOT NULL DEFAULT 0, oauth_on_orchestrators TEXT NOT NULL DEFAULT 'off', events_kept_days BIGINT NOT NULL DEFAULT 30, models TEXT NOT NULL DEFAULT '', runtime_requests BIGINT NOT NULL DEFAULT 1);
INSERT INTO "workspaces" VALUES('default','Default',0,'off',30,'',1);
INSERT INTO "workspaces" VALUES('team','Größe',1,'on_attended',7,'[{"id":"m5","short_names":["m"]}]',0);
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
CREATE INDEX unread_messages_by_due ON unread_messages (due_at) WHERE due_at > 0;
CREATE INDEX runs_by_turn ON runs (turn);
CREATE INDEX resting_sessions_by_time ON resting_sessions (due_at);
CREATE UNIQUE INDEX live_definitions_pinned ON live_definitions (place, server, kind, name)
    WHERE state = 'pinned';
COMMIT;
