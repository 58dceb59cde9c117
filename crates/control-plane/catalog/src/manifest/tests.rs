//! Manifests of agents, as people write them.

use super::*;

fn with(server: Value) -> Value {
    json!({ "name": "a", "mcp": { "servers": { "s": server } } })
}

/// The result of an agent without a fault.
fn whole(agent: Value) -> TakenApart {
    let taken = take_apart(agent);
    assert_eq!(taken.faults, []);
    taken
}

fn wrong(agent: Value) -> Vec<ManifestFault> {
    take_apart(agent).faults
}

fn fields(faults: &[ManifestFault]) -> Vec<&str> {
    faults.iter().map(|fault| fault.field.as_str()).collect()
}

/// R-M4, R-M5, R-D4: servers of an agent become servers of the catalog that it attaches.
#[test]
fn r_m4_servers_inside_an_agent_become_servers_of_the_catalog() {
    let agent = json!({ "name": "helper", "mcp": { "servers": { "github": {
        "command": "npx", "args": ["-y", "x", "$${env:HOME}/x"], "transport_type": "STDIO",
        "timeout": "15s", "mount_timeout": 7, "max_output_tokens": 2048,
        "env": { "TOKEN": "${TOKEN}", "URL": "https://${env:HOST}/${params.p}?a=${",
                 "USER": "env:LOGNAME", "PORT": 80 } } } } });
    let TakenApart { agent, servers, notices, .. } = whole(agent);
    let attached =
        json!({ "name": "helper", "mcpServers": { "github": { "ref": "helper-github" } } });
    assert_eq!(agent, attached);
    let server = json!({ "id": "helper-github", "name": "github", "type": "stdio",
        "command": "npx", "args": ["-y", "x", "$${env:HOME}/x"], "timeoutMs": 15000,
        "mountTimeoutMs": 7000, "maxOutputTokens": 2048,
        "default_config": { "TOKEN": "${TOKEN}", "PORT": "80", "USER": "${env.LOGNAME}",
            "URL": "https://${env.HOST}/${params.p}?a=$${" },
        "made_by": { "agent": "helper" } });
    let [github] = servers.as_slice() else { panic!("{servers:?}") };
    assert_eq!((&*github.at, &github.server), ("mcp.servers.github", &server));
    let told = fields(&notices);
    assert_eq!(told.len(), 3, "{notices:?}");
    assert!(told.contains(&"mcp.servers.github.env.TOKEN"), "{told:?}");
}

/// R-E21, R-E24, R-D4: a server that is called has a URL and headers; a bearer token is
/// authentication.
#[test]
fn r_e21_an_http_server_inside_an_agent_becomes_a_server_of_the_catalog() {
    let agent = with(json!({ "type": "http", "url": "https://${env:HOST}/mcp", "optional": true,
        "request_timeout": "2m", "max_output_bytes": 1024,
        "headers": { "Authorization": "Bearer ${TOKEN}", "x-team": "blue" } }));
    let TakenApart { agent, servers, .. } = whole(agent);
    assert_eq!(agent["mcpServers"], json!({ "s": { "ref": "a-s", "optional": true } }));
    let server = json!({ "id": "a-s", "name": "s", "type": "http",
        "url": "https://${env.HOST}/mcp", "timeoutMs": 120_000, "maxOutputBytes": 1024,
        "auth": { "mode": "apiKey", "key": "${TOKEN}", "headerName": "Authorization",
                  "valuePrefix": "Bearer " },
        "verbatim_headers": true, "default_config": { "x-team": "blue" },
        "made_by": { "agent": "a" } });
    assert_eq!(servers[0].server, server);
}

/// R-M8: `mcp: {}` is a mark that there are none.
#[test]
fn r_m8_no_servers_are_no_fault() {
    for mcp in [json!({}), json!(null), json!([]), json!({ "servers": {} })] {
        let apart = whole(json!({ "name": "a", "mcp": mcp }));
        let marked = json!({ "name": "a", "mcp": {} });
        assert_eq!((&apart.agent, apart.servers.len()), (&marked, 0));
        assert_eq!(take_apart(marked.clone()).agent, marked, "it is kept");
        assert_eq!(apart.notices.len(), 1);
    }
    assert!(whole(json!({ "name": "a" })).notices.is_empty());
}

/// R-E22, R-D2: names attach servers of the catalog, in addition to other attachments. If a name
/// also stands for a server inside the manifest, the inner server counts, with a warning.
#[test]
fn r_d2_a_manifest_combines_names_with_servers_inside() {
    let agent = json!({ "name": "a", "mcp": ["github", "docs"],
        "mcpServers": { "library": { "ref": "docs" } } });
    let apart = whole(agent);
    let attached = json!({ "github": { "ref": "github" }, "docs": { "ref": "docs" },
        "library": { "ref": "docs" } });
    assert_eq!(apart.agent, json!({ "name": "a", "mcpServers": attached }));
    assert!(apart.servers.is_empty() && apart.notices.is_empty());
    let list = whole(json!({ "name": "a", "mcp": { "servers": ["docs"] } }));
    assert_eq!(list.agent["mcpServers"], json!({ "docs": { "ref": "docs" } }));
    let both = json!({ "name": "a", "mcp": { "servers": { "github": { "command": "x" } },
        "names": ["docs", "github"] } });
    let apart = whole(both);
    let attached = json!({ "github": { "ref": "a-github" }, "docs": { "ref": "docs" } });
    assert_eq!(apart.agent["mcpServers"], attached);
    assert_eq!(fields(&apart.notices), ["mcp.names[1]"]);
}

/// Other programs' skills are capabilities.
#[test]
fn r_m4_skills_are_capabilities() {
    let apart = whole(json!({ "name": "a", "skills": ["code-analysis"] }));
    assert_eq!(apart.agent, json!({ "name": "a", "capabilities": ["code-analysis"] }));
    assert_eq!(fields(&apart.notices), ["skills"]);
}

/// A-1, R-M5: `${NAME}` is a secret and a whole value; no other form is one.
#[test]
fn a_1_a_secret_is_a_whole_value() {
    let faulty = with(json!({ "command": "x", "args": ["${TOKEN}"],
        "env": { "A": "Bearer ${TOKEN}", "B": "$${TOKEN}" } }));
    let faults = wrong(faulty);
    assert_eq!(fields(&faults), ["mcp.servers.s.args[0]", "mcp.servers.s.env.A"]);
    assert!(faults[1].remedy.contains("${env:TOKEN}"), "{faults:?}");
}

/// D7: a variable that only clients fill in is one fault with one remedy, at each place.
#[test]
fn d7_each_client_only_variable_is_one_fault_with_one_remedy() {
    let program = with(json!({ "command": "x", "args": ["${workspaceFolder}/a", "${input:key}"],
        "env": { "A": "${workspaceRoot}", "B": "${input:b-key}", "C": "x ${userHome}" } }));
    let faults = wrong(program);
    let told: Vec<_> = faults.iter().map(|fault| (&*fault.field, &*fault.remedy)).collect();
    let folder = "write the path of the folder on the daemon's machine";
    let expected = [
        ("args[0]", folder),
        (
            "args[1]",
            "pass the value in `env`, as `${KEY}`, and store that secret with `narthex secrets set \
             KEY`",
        ),
        ("env.A", folder),
        ("env.B", "write `${B_KEY}`, and store that secret with `narthex secrets set B_KEY`"),
        ("env.C", folder),
    ];
    for (told, (place, remedy)) in told.iter().zip(expected) {
        assert_eq!(*told, (&*format!("mcp.servers.s.{place}"), remedy));
    }
    assert_eq!(told.len(), expected.len(), "{told:?}");
    let called = with(json!({ "url": "https://${input:host}/mcp",
        "headers": { "authorization": "Bearer ${input:token}" } }));
    let faults = wrong(called);
    assert_eq!(fields(&faults), ["mcp.servers.s.url", "mcp.servers.s.headers.authorization"]);
    assert!(faults[1].remedy.starts_with("write `Bearer ${TOKEN}`, and"), "{faults:?}");
}

/// R-M5: arguments, which all users of the machine can read, hold neither a secret nor a variable
/// of the daemon, whose value counts as a secret.
#[test]
fn r_m5_arguments_have_no_variables() {
    let args = ["${env:HOME}/x", "env:HOME", "a ${env:A} ${env:B}", "env: HOME", "$${env:HOME}"];
    let faults = wrong(with(json!({ "command": "x", "args": args })));
    let places = [0, 1, 2].map(|index| format!("mcp.servers.s.args[{index}]"));
    assert_eq!(fields(&faults), places);
    assert!(faults[2].message.starts_with("`${env:A}` "), "{faults:?}");
    assert!(faults.iter().all(|fault| fault.remedy.contains("`env`")), "{faults:?}");
    let url = with(json!({ "url": "https://${env:HOST}/mcp" }));
    assert_eq!(whole(url).servers[0].server["url"], "https://${env.HOST}/mcp");
}

/// R-E23: an invalid time is a fault of its server; zero and negative times mean the default.
#[test]
fn r_e23_an_invalid_duration_is_a_fault_of_its_server() {
    for (text, ms) in [("500ms", 500), ("30s", 30_000), ("2m", 120_000), ("1h", 3_600_000)] {
        let apart = whole(with(json!({ "command": "x", "timeout": text })));
        assert_eq!(apart.servers[0].server["timeoutMs"], json!(ms), "{text}");
    }
    for nothing in [json!("0s"), json!("-5s"), json!(0), json!(-3)] {
        let apart = whole(with(json!({ "command": "x", "timeout": nothing })));
        assert_eq!(apart.servers[0].server["timeoutMs"], Value::Null);
        assert_eq!(fields(&apart.notices), ["mcp.servers.s.timeout"]);
    }
    for time in [json!("soon"), json!("5"), json!("5 s"), json!("s"), json!(1.5), json!(true)] {
        let faults = wrong(with(json!({ "command": "x", "mount_timeout": time })));
        assert_eq!(fields(&faults), ["mcp.servers.s.mount_timeout"]);
    }
}

/// R-E22: all parts that cannot be used are reported at once, each with its place.
#[test]
fn r_m4_each_unusable_part_of_a_manifest_is_named() {
    for (agent, places) in [
        (json!({ "name": "a", "mcp": { "server": {} } }), vec!["mcp.server"]),
        (json!({ "name": "a", "mcp": "github" }), vec!["mcp"]),
        (json!({ "name": "a", "mcp": ["github", 1] }), vec!["mcp[1]"]),
        (json!({ "name": "a", "mcp": ["github", "github"] }), vec!["mcp[1]"]),
        (json!({ "name": "a", "mcp": { "servers": 1 } }), vec!["mcp.servers"]),
        (with(json!({ "comand": "x" })), vec!["mcp.servers.s.comand", "mcp.servers.s.command"]),
        (
            with(json!({ "transport_type": "carrier pigeon", "type": "stdio", "command": "x" })),
            vec!["mcp.servers.s.transport_type"],
        ),
        (
            with(json!({ "type": "http", "command": "x" })),
            vec!["mcp.servers.s.url", "mcp.servers.s.command"],
        ),
        (
            with(json!({ "command": "x", "timeout": "1s", "request_timeout": "2s" })),
            vec!["mcp.servers.s.timeout"],
        ),
        (with(json!({ "command": "x", "headers": {} })), vec!["mcp.servers.s.headers"]),
        (with(json!({ "url": "https://x", "env": {} })), vec!["mcp.servers.s.env"]),
        (with(json!({ "command": "x", "env": { "A": [] } })), vec!["mcp.servers.s.env.A"]),
        (with(json!({ "command": "x", "optional": "yes" })), vec!["mcp.servers.s.optional"]),
        (with(json!(3)), vec!["mcp.servers.s"]),
        (
            json!({ "name": "a", "mcp": { "servers": { "no__good": { "command": "x" } } } }),
            vec!["mcp.servers.no__good"],
        ),
        (json!({ "name": "a", "skills": [], "capabilities": [] }), vec!["skills"]),
    ] {
        let faults = wrong(agent);
        assert_eq!(fields(&faults), places, "{faults:?}");
        assert!(faults.iter().all(|fault| !fault.remedy.is_empty()), "{faults:?}");
    }
    let mut both = with(json!({ "command": "x" }));
    both["mcpServers"] = json!({ "s": { "ref": "t" } });
    let faults = wrong(both);
    assert_eq!(fields(&faults), ["mcp.servers.s"]);
}

/// R-M4: the fault of a misspelt key names the key that was meant.
#[test]
fn r_m4_the_fault_of_a_misspelt_key_suggests_the_known_key() {
    for (mcp, field, remedy) in [
        (json!({ "nmes": ["docs"] }), "mcp.nmes", "did you mean `names`?"),
        (
            json!({ "servers": { "a": { "comand": "true" } } }),
            "mcp.servers.a.comand",
            "did you mean `command`?",
        ),
    ] {
        let faults = take_apart(json!({ "name": "helper", "mcp": mcp })).faults;
        assert_eq!((faults[0].field.as_str(), faults[0].remedy.as_str()), (field, remedy));
    }
}

/// R-M4: faults of the converted manifest name the places of the written one, even if it has other
/// faults.
#[test]
fn r_m4_faults_name_places_of_the_manifest_as_written() {
    let helper = json!({ "name": "helper", "skills": ["papers"], "mcp": {
        "names": ["docs"],
        "servers": {
            "git": { "command": "git", "request_timeout": "soon", "max_output_tokens": -1,
                     "env": { "KEY": "${KEY}" } },
            "web": { "url": "https://web.test", "type": "http", "timeout": "9s",
                     "headers": { "authorization": "Bearer ${TOKEN}" } } } } });
    let own = json!([{ "id": "own" }]);
    let document = json!({ "servers": own, "agents": [{ "name": "plain" }, helper] });
    let made = ManifestDocument::of_workspace(document).unwrap();
    let at = "agents[1].mcp.servers";
    assert_eq!(fields(&made.faults), [format!("{at}.git.request_timeout")]);
    assert_eq!(made.plain["servers"][1]["maxOutputTokens"], -1, "{:?}", made.plain);
    assert_eq!(made.inside["helper-git"], "helper");
    for (place, written) in [
        ("servers[1].maxOutputTokens", format!("{at}.git.max_output_tokens")),
        ("servers[1].timeoutMs", format!("{at}.git.request_timeout")),
        ("servers[1].default_config.KEY", format!("{at}.git.env.KEY")),
        ("servers.helper-git.default_config.KEY", format!("{at}.git.env.KEY")),
        ("servers[1].id", format!("{at}.git")),
        ("servers[1].type", format!("{at}.git")),
        ("servers[2].type", format!("{at}.web.type")),
        ("servers[2].timeoutMs", format!("{at}.web.timeout")),
        ("servers[2].url", format!("{at}.web.url")),
        ("servers[2].auth.key", format!("{at}.web.headers.authorization")),
        ("agents[1].mcpServers.docs.ref", "agents[1].mcp.names[0]".to_owned()),
        ("agents[1].mcpServers.git.ref", format!("{at}.git")),
        ("agents[1].capabilities[0]", "agents[1].skills[0]".to_owned()),
    ] {
        assert_eq!(made.written(place), Some(written), "{place}");
    }
    for same in ["servers[0].url", "agents[0].capabilities[0]", "agents[1].name", "secrets[0]"] {
        assert_eq!(made.written(same), None, "{same}");
    }
    let alone = json!({ "name": "a", "mcp": ["docs"] });
    let alone = ManifestDocument::of_agent(alone).unwrap();
    assert_eq!(alone.written("mcpServers.docs.ref").as_deref(), Some("mcp[0]"));
    let plain = json!({ "agents": [{ "name": "a" }] });
    assert!(ManifestDocument::of_workspace(plain).is_none());
}

/// O1, R-M4: an agent that names itself by `id` gives this name to its servers.
#[test]
fn o1_servers_of_a_manifest_have_its_id_as_name() {
    let mut agent = with(json!({ "command": "x" }));
    agent["id"] = agent.as_object_mut().unwrap().remove("name").unwrap();
    let document = ManifestDocument::of_workspace(json!({ "agents": [agent] })).unwrap();
    assert_eq!(document.plain["servers"][0]["id"], "a-s");
    assert_eq!(document.plain["servers"][0]["made_by"], json!({ "agent": "a" }));
    assert_eq!(document.inside["a-s"], "a");
}

/// R-M4: a name that cannot be used is one fault, not one more for each of its servers.
#[test]
fn r_m4_an_invalid_agent_name_is_one_fault() {
    let mut agent = with(json!({ "command": "x" }));
    agent["name"] = json!("no good");
    let taken = whole(agent);
    assert_eq!(taken.servers[0].server["id"], "unnamed-s");
}

/// R-M4: each server names the agent of its manifest, and a manifest cannot name another.
#[test]
fn r_m4_a_server_names_the_agent_of_its_manifest() {
    let inside = |agent: &str| {
        json!({ "name": agent, "mcp": { "servers": {
        "git": { "command": "git" }, "web": { "url": "https://web.test" } } } })
    };
    let document = json!({ "servers": [{ "id": "own" }], "agents": [inside("a"), inside("b")] });
    let made = ManifestDocument::of_workspace(document).unwrap();
    assert_eq!(made.faults, []);
    let servers = made.plain["servers"].as_array().unwrap().iter();
    let servers: Vec<_> = servers
        .map(|one| (one["id"].as_str().unwrap(), one["made_by"]["agent"].as_str()))
        .collect();
    let (a, b) = (Some("a"), Some("b"));
    assert_eq!(servers, [("own", None), ("a-git", a), ("a-web", a), ("b-git", b), ("b-web", b)]);
    let said = with(json!({ "command": "x", "made_by": { "agent": "b" } }));
    assert_eq!(fields(&wrong(said)), ["mcp.servers.s.made_by"]);
}
