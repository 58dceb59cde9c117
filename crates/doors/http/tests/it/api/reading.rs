//! Tests of reading: rows, logs, files, tests of servers, and streams of events.

use fs_err as fs;
use http::StatusCode;
use narthex_control::By;
use narthex_policy::RunPolicy;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::world::{Api, SOON, shell};
use crate::world::{Stream, World, message};

/// E46, E139, E147: a row has the facts that an operator needs, and no secret.
#[tokio::test]
async fn e147_rows_show_the_state_of_servers_and_no_secret() {
    let api = Api::over(&json!({
        "web": { "transport": "http", "url": "URL?key=secret-query",
            "headers": { "X-Api-Key": "secret-header" },
            "auth": { "mode": "apiKey", "key": "secret-key" } },
        "shell": shell(),
        "bad": { "transport": "stdio" },
    }))
    .await;
    let all = api.get("/api/servers").await;
    assert_eq!(all["settled"], true);
    let [bad, shell, web] = [0, 1, 2].map(|index| &all["items"][index]);
    assert_eq!((&web["name"], &web["state"]), (&json!("web"), &json!("ready")));
    assert_eq!((&web["transport"], &web["auth"]), (&json!("http"), &json!("apiKey")));
    assert_eq!(web["provenance"], "workspace");
    assert_eq!(web["file"], api.dir.path().join("mcp.json").to_str().unwrap());
    assert_eq!((&web["is_overridden"], &web["is_asleep"]), (&json!(false), &json!(false)));
    assert!(web["tools"].as_u64().unwrap() > 5 && web["resources"].as_u64().unwrap() > 0);
    assert_eq!(web["capabilities"]["prompts"], true);
    assert!(narthex_model::Timestamp::read(web["last_check"].as_str().unwrap()).is_some());
    assert_eq!((&web["attempt"], &web["reconnects"]), (&json!(0), &json!(0)));
    assert_eq!(web.get("tool_list"), None);
    assert_eq!((&shell["transport"], &shell["auth"]), (&json!("stdio"), &json!("none")));
    assert_eq!((&bad["state"], &bad["transport"]), (&json!("error"), &Value::Null));
    assert_eq!(bad["error"]["kind"], "transport_error");
    let texts = [
        api.ask("GET", "/api/servers?tools=true").send().await,
        api.ask("GET", "/api/servers/web?tools=true").send().await,
        api.ask("GET", "/api/servers/shell").send().await,
        api.ask("GET", "/api/files").send().await,
    ];
    for answer in texts {
        assert!(!answer.text().contains("secret"), "{}", answer.text());
    }
    let web = api.get("/api/servers/web?tools=true").await;
    let tools = web["tool_list"].as_array().unwrap();
    assert_eq!(Some(tools.len() as u64), web["tools"].as_u64());
    assert!(tools.iter().any(|tool| tool["name"] == "echo" && tool["description"].is_string()));
}

/// E140: an overridden entry has its own row, which shows that.
#[tokio::test]
async fn e140_a_hidden_entry_is_shown_as_overridden() {
    let api = Api::one().await;
    let entry = r#"{"transport": "http", "url": "http://127.0.0.1:1/"}"#;
    let saved = api.send("PUT", "/api/servers/one", entry).await.succeeded();
    let warning = saved["warnings"][0].as_str().unwrap();
    assert!(warning.contains("mcp.json") && warning.contains("is used instead"), "{warning}");
    let all = api.get("/api/servers").await;
    let rows: Vec<_> = all["items"].as_array().unwrap().iter().collect();
    assert_eq!(rows.len(), 2);
    let shown = |index: usize| [&rows[index]["provenance"], &rows[index]["is_overridden"]];
    assert_eq!(shown(0), [&json!("settings"), &json!(true)]);
    assert_eq!(shown(1), [&json!("workspace"), &json!(false)]);
    assert_eq!(api.get("/api/servers/one").await["provenance"], "workspace");
}

/// O34: rows come in pages by name. A row that is added, removed or changed between two pages
/// neither repeats another row nor hides one.
#[tokio::test]
async fn o34_changes_between_pages_neither_repeat_nor_hide_rows() {
    let off = json!({ "transport": "http", "url": "http://127.0.0.1:1/", "disabled": true });
    for (path, name) in [("/api/servers", "name"), ("/api/status", "alias")] {
        let api = Api::over(&json!({ "e": off, "B, x": off })).await;
        let put = async |name: &str| {
            let path = format!("/api/servers/{name}");
            api.send("PUT", &path, off.to_string()).await.succeeded();
        };
        let page = async |after: Option<String>| {
            let after = after.unwrap_or_default();
            let after = utf8_percent_encode(&after, NON_ALPHANUMERIC);
            let page = api.get(&format!("{path}?limit=2&after={after}")).await;
            assert_eq!(page["settled"], true);
            let items = page["items"].as_array().unwrap().iter();
            let names: Vec<_> = items.map(|row| row[name].as_str().unwrap().to_owned()).collect();
            (names, page["next"].as_str().map(str::to_owned))
        };
        for name in ["e", "b-2", "c", "b"] {
            put(name).await;
        }
        let (first, next) = page(None).await;
        assert_eq!(first, ["B, x", "b"]);
        // A row before the current position and one after it are added, and the row at the position
        // is removed.
        put("a").await;
        put("d").await;
        assert!(api.ask("DELETE", "/api/servers/b").send().await.status.is_success());
        let (second, next) = page(next).await;
        assert_eq!(second, ["b-2", "c"]);
        api.send("PATCH", "/api/servers/c", r#"{"timeoutMs": 77}"#).await.succeeded();
        let (third, next) = page(next).await;
        assert_eq!(third, ["d", "e"]);
        // The row of the other layer.
        assert_eq!(page(next).await, (vec!["e".to_owned()], None));
        let refused = api.ask("GET", &format!("{path}?limit=101")).send().await;
        refused.problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid");
    }
}

/// E148: names in paths are decoded, and an unknown name gets a problem with its kind.
#[tokio::test]
async fn e148_names_in_paths_are_decoded_and_unknown_names_are_not_found() {
    let api =
        Api::over(&json!({ "one": { "transport": "http", "url": "URL" }, "A b/c": {} })).await;
    assert_eq!(api.get("/api/servers/%6Fne").await["name"], "one");
    assert_eq!(api.get("/api/servers/A%20b%2Fc").await["state"], "error");
    for path in ["/api/servers/two", "/api/servers/%FF", "/api/servers/one%00", "/api/servers/ONE"]
    {
        let answer = api.ask("GET", path).send().await;
        answer.problem(StatusCode::NOT_FOUND, "not_found");
    }
    let head = api.ask("HEAD", "/api/servers/one").open().await;
    assert_eq!(head.status(), StatusCode::OK);
}

/// Every refusal of the API to a known caller is a problem. A wrong method is answered with the
/// allowed ones.
#[tokio::test]
async fn wrong_methods_and_unknown_paths_are_problems() {
    let api = Api::one().await;
    for (method, path, allowed) in [
        ("POST", "/api/servers", "GET, HEAD"),
        ("POST", "/api/servers/one", "GET, HEAD, PUT, PATCH, DELETE"),
        ("GET", "/api/reload", "POST"),
    ] {
        let answer = api.ask(method, path).send().await;
        answer.problem(StatusCode::METHOD_NOT_ALLOWED, "invalid");
        assert_eq!(answer.headers["allow"], allowed);
    }
    let answer = api.ask("GET", "/api/nothing").send().await;
    answer.problem(StatusCode::NOT_FOUND, "not_found");
}

/// D5, A-7: servers that a run lacks are absent for it, also when requested by name.
#[tokio::test]
async fn d5_a_run_sees_only_rows_of_its_servers() {
    let api = Api::one().await;
    let own = api.world.request(http::Method::GET, "/api/servers/one").send().await;
    assert_eq!(own.succeeded()["state"], "ready");
    let none = RunPolicy::Attached(std::collections::BTreeSet::new());
    let token = format!("Bearer {}", api.world.other_run(none));
    let ask = |path: &str| {
        let request = api.world.request(http::Method::GET, path);
        request.header("authorization", &token).send()
    };
    assert_eq!(ask("/api/servers").await.succeeded()["items"], json!([]));
    let hidden = ask("/api/servers/one").await.problem(StatusCode::NOT_FOUND, "not_found");
    let absent = ask("/api/servers/two").await.problem(StatusCode::NOT_FOUND, "not_found");
    assert_eq!(hidden, absent.replace("two", "one"));
}

/// D28: a run's token reads neither the file of an entry nor the gates that match nothing;
/// operators do.
#[tokio::test]
async fn d28_a_run_reads_no_configuration_in_rows() {
    let gates = json!({ "ecko": "demo.write" });
    let server = json!({ "one": { "transport": "http", "url": "URL", "tool_scopes": gates } });
    let api = Api::over(&server).await;
    for path in ["/api/servers", "/api/servers/one", "/api/status"] {
        let by_run = api.world.request(http::Method::GET, path).send().await.succeeded();
        let (by_run, by_operator) = (by_run.to_string(), api.get(path).await.to_string());
        for word in ["gates_unmatched", "gate_unmatched", "ecko"] {
            assert!(!by_run.contains(word), "{path} {word}: {by_run}");
            assert!(by_operator.contains(word), "{path} {word}: {by_operator}");
        }
        assert!(!by_run.contains("\"file\""), "{path}: {by_run}");
    }
}

/// D5: a tool that a server's rules hide from callers is neither counted nor listed.
#[tokio::test]
async fn d5_hidden_tools_are_not_listed() {
    let entry = |tools: Value| json!({ "transport": "http", "url": "URL", "tools": tools });
    let all = entry(json!({ "allow": ["*"] }));
    let api = Api::over(&json!({ "all": all, "few": entry(json!({ "deny": ["echo"] })) })).await;
    let [all, few] = ["all", "few"].map(|name| format!("/api/servers/{name}?tools=true"));
    let (all, few) = (api.get(&all).await, api.get(&few).await);
    let has_echo = |row: &Value| row["tool_list"].to_string().contains("\"echo\"");
    assert!(has_echo(&all) && !has_echo(&few));
    assert_eq!(few["tools"].as_u64(), all["tools"].as_u64().map(|count| count - 1));
}

/// A-9: a server's stderr is for operators.
#[tokio::test]
async fn a9_logs_are_for_operators() {
    let api =
        Api::over(&json!({ "shell": shell(), "web": { "transport": "http", "url": "URL" } })).await;
    // A line on stderr is read apart from the answers, and maybe after them.
    let logs = async {
        loop {
            let logs = api.get("/api/servers/shell/logs").await;
            if logs["lines"] != json!([]) {
                return logs;
            }
            tokio::task::yield_now().await;
        }
    };
    let logs = tokio::time::timeout(SOON, logs).await.expect("a line must come");
    assert_eq!(logs, json!({ "name": "shell", "lines": ["is awake"] }));
    assert_eq!(api.get("/api/servers/web/logs").await["lines"], json!([]));
    let unknown = api.ask("GET", "/api/servers/two/logs").send().await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
    let client = api.world.request(http::Method::GET, "/api/servers/shell/logs").send().await;
    client.problem(StatusCode::FORBIDDEN, "denied");
}

/// Logs can be followed: stored and new lines, across a restart, until the server is removed.
#[tokio::test]
async fn logs_are_followed_until_the_server_is_removed() {
    let api = Api::one().await;
    api.send("PUT", "/api/servers/two", shell().to_string()).await.succeeded();
    let request = api.ask("GET", "/api/servers/two/logs").header("accept", "text/event-stream");
    let mut stream = Stream::of(request.open().await);
    assert_eq!(next(&mut stream).await, json!({ "line": "is awake" }));
    api.post("/api/servers/two/reconnect").await.succeeded();
    let parting = next(&mut stream).await;
    assert!(parting["line"].as_str().unwrap().contains("started again"), "{parting}");
    assert_eq!(next(&mut stream).await, json!({ "line": "is awake" }));
    api.ask("DELETE", "/api/servers/two").send().await;
    assert!(tokio::time::timeout(SOON, stream.next()).await.unwrap().is_none());
}

/// A test has four stages, each with its outcome, and has no lasting effect.
#[tokio::test]
async fn a_test_of_a_server_reports_each_stage() {
    let api = Api::over(&json!({
        "web": { "transport": "http", "url": "URL" },
        "shell": shell(),
        "missing": { "transport": "stdio", "command": "no-such-program" },
        "bad": {},
    }))
    .await;
    let before = api.row("shell").connection;
    let probe = api.post("/api/servers/web/test").await.succeeded();
    assert_eq!(probe["ok"], true, "{probe}");
    let stages = |probe: &Value| {
        let stages = probe["stages"].as_array().unwrap().iter();
        let text = |stage: &Value| format!("{} {}", stage["name"], stage["outcome"]);
        stages.map(|stage| text(stage).replace('"', "")).collect::<Vec<_>>()
    };
    let all = ["connect ok", "tools/list ok", "resources/list ok", "prompts/list ok"];
    assert_eq!(stages(&probe), all);
    assert!(probe["stages"][1]["count"].as_u64().unwrap() > 5);
    let probe = api.post("/api/servers/shell/test").await.succeeded();
    let (name, version) = (&probe["server_name"], &probe["server_version"]);
    assert_eq!((name, version), (&json!("shell"), &json!("3")));
    let all = ["connect ok", "tools/list ok", "resources/list not_supported"];
    assert_eq!(stages(&probe)[..3], all);
    assert_eq!(api.row("shell").connection, before);
    let probe = api.post("/api/servers/missing/test").await.succeeded();
    assert_eq!((stages(&probe), &probe["ok"]), (vec!["connect failed".to_owned()], &json!(false)));
    assert!(probe["stages"][0]["reason"].as_str().unwrap().contains("no-such-program"));
    let bad = api.post("/api/servers/bad/test").await;
    bad.problem(StatusCode::BAD_REQUEST, "invalid");
    let unknown = api.post("/api/servers/two/test").await;
    unknown.problem(StatusCode::NOT_FOUND, "not_found");
}

/// R-M11, R-M10: a test obeys the limits of the entry that it tests, as a start does.
#[tokio::test]
async fn r_m11_a_test_of_a_server_has_the_limits_of_its_entry() {
    let mut entry = shell();
    let script = entry["args"][1].as_str().unwrap();
    entry["args"][1] = script.replace("*'\"id\"'*)", "*tools/list*) ;;\n*'\"id\"'*)").into();
    entry["mountTimeout"] = json!("4s");
    entry["disabled"] = json!(true);
    let api = Api::over(&json!({ "hangs": entry })).await;
    let probe = api.post("/api/servers/hangs/test").await.succeeded();
    assert_eq!(probe["stages"][0]["outcome"], "ok", "{probe}");
    let tools = &probe["stages"][1];
    assert_eq!(
        (&tools["outcome"], &tools["after_ms"]),
        (&json!("timeout"), &json!(4000)),
        "{probe}"
    );
}

/// A test as a stream: each stage is reported when it ends.
#[tokio::test]
async fn a_test_of_a_server_can_be_streamed() {
    let api = Api::one().await;
    let request = || api.ask("POST", "/api/servers/one/test").header("accept", "text/event-stream");
    let events: Vec<_> = request().events().await.iter().map(message).collect();
    let names: Vec<_> = events.iter().map(|event| event["stage"]["name"].clone()).collect();
    let all = ["connect", "tools/list", "resources/list", "prompts/list"].map(Value::from);
    assert_eq!(names[..4], all);
    assert_eq!((events.len(), &events[4]["result"]["ok"]), (5, &json!(true)));
}

/// E118: the status of files is shown. A broken file is reported while its last good content stays
/// in use.
#[tokio::test]
async fn e118_files_are_listed_with_their_status_and_reloaded() {
    let api = Api::one().await;
    let path = api.dir.path().join("mcp.json");
    let text = fs::read_to_string(&path).unwrap();
    let both =
        text.replacen("\"one\"", "\"two\":{\"transport\":\"stdio\",\"command\":\"x\"},\"one\"", 1);
    fs::write(&path, both).unwrap();
    let reloaded = api.post("/api/reload").await.succeeded();
    assert_eq!(reloaded["server_count"], 2);
    assert_eq!(reloaded["servers"], json!(["one", "two"]));
    assert_eq!(api.get("/api/servers/two").await["name"], "two");
    fs::write(&path, "{").unwrap();
    let reloaded = api.post("/api/reload").await.succeeded();
    assert_eq!(reloaded["server_count"], 2);
    let files = api.get("/api/files").await;
    let file = files["items"].as_array().unwrap().iter().find(|one| one["error"].is_string());
    let file = file.unwrap_or_else(|| panic!("{files}"));
    let first = api.get("/api/files?limit=1").await;
    assert_eq!(first["items"], json!([files["items"][0]]));
    let after = utf8_percent_encode(first["next"].as_str().unwrap(), NON_ALPHANUMERIC);
    let rest = api.get(&format!("/api/files?after={after}")).await;
    assert_eq!(rest["items"].as_array().unwrap()[..], files["items"].as_array().unwrap()[1..]);
    assert_eq!((&file["provenance"], &file["is_present"]), (&json!("workspace"), &json!(true)));
    fs::remove_file(&path).unwrap();
    assert_eq!(api.post("/api/reload").await.succeeded()["server_count"], 0);
}

async fn next(stream: &mut Stream) -> Value {
    let event = tokio::time::timeout(SOON, stream.next()).await.expect("an event must come");
    message(&event.expect("the stream must go on"))
}

/// E65, E68: the stream has the current rows at once, and each change after that, until the daemon
/// ends.
#[tokio::test]
async fn e65_events_show_every_change_until_the_end() {
    let api = Api::one().await;
    let mut stream = Stream::of(api.ask("GET", "/api/events").open().await);
    let first = next(&mut stream).await;
    assert_eq!((&first["seq"], &first["servers"][0]["state"]), (&json!(0), &json!("ready")));
    api.control.disable("one", &By::system()).await.unwrap();
    let mut last = first;
    while last["servers"][0]["state"] != "disabled" {
        let event = next(&mut stream).await;
        assert_eq!(event["seq"].as_u64(), last["seq"].as_u64().map(|seq| seq + 1));
        last = event;
    }
    api.world.options.closing.cancel();
    while let Some(event) = tokio::time::timeout(SOON, stream.next()).await.unwrap() {
        assert_eq!(message(&event)["servers"][0]["state"], "disabled");
    }
}

/// D5: a run receives no events of servers that it lacks, not even that something has changed.
#[tokio::test]
async fn d5_a_run_gets_no_events_of_hidden_servers() {
    let api = Api::over(&json!({ "one": shell(), "two": shell() })).await;
    let two = [narthex_model::Alias::new("two").unwrap()].into();
    let token = format!("Bearer {}", api.world.other_run(RunPolicy::Attached(two)));
    let request = api.world.request(http::Method::GET, "/api/events");
    let mut stream = Stream::of(request.header("authorization", &token).open().await);
    assert_eq!(next(&mut stream).await["servers"][0]["name"], "two");
    api.control.disable("one", &By::system()).await.unwrap();
    api.control.disable("two", &By::system()).await.unwrap();
    let event = next(&mut stream).await;
    assert_eq!((&event["seq"], event["servers"].as_array().unwrap().len()), (&json!(1), 1));
    assert_eq!(event["servers"][0]["state"], "disabled", "{event}");
}

/// R-E29, X-E30: if nothing can be changed, the answer says so.
#[tokio::test]
async fn a_daemon_without_a_control_plane_only_shows_servers() {
    let world = World::with_fixture().await;
    let ask = |method: &str, path: &str| {
        let request = world.request(method.parse().unwrap(), path);
        request.header("authorization", &format!("Bearer {}", crate::world::ADMIN)).send()
    };
    assert_eq!(ask("GET", "/api/servers/fixture").await.succeeded()["provenance"], "programmatic");
    let all = ["disable", "enable", "reconnect", "reauthorize", "authorize", "sign-out", "test"];
    let verbs = all.map(|verb| ("POST", format!("/api/servers/fixture/{verb}")));
    let others = [
        ("GET", "/api/servers/fixture/logs"),
        ("PUT", "/api/servers/fixture"),
        ("PATCH", "/api/servers/fixture"),
        ("DELETE", "/api/servers/fixture"),
        ("POST", "/api/reload"),
        ("GET", "/api/files"),
    ];
    let others = others.map(|(method, path)| (method, path.to_owned()));
    for (method, path) in verbs.into_iter().chain(others) {
        let text = ask(method, &path).await.problem(StatusCode::CONFLICT, "conflict");
        assert!(text.contains("fixed"), "{text}");
    }
}
