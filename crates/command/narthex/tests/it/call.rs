//! `narthex call` and `narthex tools` in process: arguments, output, exit codes.

use serde_json::json;

use crate::support::{Place, fixture_entry};

const HERE: [&str; 3] = ["call", "--config", "mcp.json"];

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    HERE.into_iter().chain(more.iter().copied()).collect()
}

#[test]
fn a_call_prints_the_text_alone() {
    let place = Place::new();
    let done = place.run(words(&["fixture", "echo", "message=hello"])).succeeded();
    assert_eq!(done.stdout, "hello\n");
    let done = place.run(words(&["fixture", "echo", r#"{"message":"as JSON"}"#])).succeeded();
    assert_eq!(done.stdout, "as JSON\n");
}

#[test]
fn values_follow_the_schema_of_the_tool() {
    let place = Place::new();
    // `message` is a text, although 12 reads as a number; `a` and `b` are numbers.
    assert_eq!(place.run(words(&["fixture", "echo", "message=12"])).succeeded().stdout, "12\n");
    assert_eq!(place.run(words(&["fixture", "add", "a=2", "b:=3"])).succeeded().stdout, "5\n");
    place.write("text", "from a file");
    let done = place.run(words(&["fixture", "echo", "message=@text"])).succeeded();
    assert_eq!(done.stdout, "from a file\n");
}

#[test]
fn json_is_the_raw_result() {
    let done = Place::new().run(words(&["fixture", "add", "a=2", "b=3", "--json"])).succeeded();
    assert_eq!(done.json()["structuredContent"], json!({ "sum": 5 }));
    assert_eq!(done.stdout.lines().count(), 1);
}

/// S22: a tool's answer is seen on a terminal and does nothing there; a file gets it as it is.
#[test]
fn s22_a_result_is_inert_on_a_terminal() {
    let place = Place::new();
    let text = "\u{1b}]0;owned\u{7}a\u{9b}2Jb\u{202e}c\nd";
    place.write("text", text);
    let done = place.run(words(&["fixture", "echo", "message=@text"])).succeeded();
    assert_eq!(done.stdout, format!("{text}\n"));
    let program = env!("CARGO_BIN_EXE_narthex");
    let line = format!("{program} call --config mcp.json fixture echo message=@text");
    let shown = place.at_terminal(&format!("{line} 2>/dev/null"), &[]);
    let replaced = text.replace(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}'], "\u{fffd}");
    assert_eq!(shown.replace("\r\n", "\n"), format!("{replaced}\n"));
    let shown = place.at_terminal(&format!("{line} --json 2>/dev/null"), &[]);
    let is_acting = |c: char| c.is_control() && c != '\r' && c != '\n' || c == '\u{202e}';
    assert!(!shown.contains(is_acting), "{shown:?}");
    let result: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(result["content"][0]["text"], text);
}

#[test]
fn content_that_is_no_text_is_described() {
    let done = Place::new().run(words(&["fixture", "test_image_content"])).succeeded();
    assert!(done.stdout.starts_with("[image, image/png,"), "{done:?}");
}

/// D16: the exit code and the kind show that a call failed.
#[test]
fn d16_a_failed_call_ends_with_1_and_its_kind() {
    let place = Place::new();
    place.run(words(&["fixture", "fail"])).failed(1, &["error: server_error: this tool always"]);
    let done = place.run(words(&["fixture", "fail", "--json"])).failed(1, &[]);
    assert_eq!(done.json()["isError"], true);
    let done = place.run(words(&["fixture", "ecko", "message=x"]));
    done.failed(1, &["tool_not_found", "did you mean", "echo"]);
    let done = place.run(words(&["fixture", "ecko", "--json"])).failed(1, &[]);
    assert_eq!(done.json()["structuredContent"]["error"]["kind"], "tool_not_found");
    place.run(words(&["nosuch", "echo"])).failed(1, &["not_found", "`nosuch`", "it has fixture"]);
}

/// E44.
#[test]
fn a_call_beyond_its_timeout_fails() {
    let done = Place::new().run(words(&["--timeout", "50ms", "fixture", "sleep", "ms=60000"]));
    done.failed(1, &["error: timeout"]);
}

/// D30: listing the tools counts into the time of the call, which is not made when that is over.
#[test]
fn d30_the_timeout_of_a_call_includes_listing_the_tools() {
    let place = Place::new();
    let mut entry = fixture_entry();
    entry["args"] = json!(["--stdio", "--quirks", "hang-later-list"]);
    entry["timeoutMs"] = json!(300);
    place.write("slow.json", &json!({ "servers": { "fixture": entry } }).to_string());
    let call = ["call", "--config", "slow.json", "fixture", "echo", "message=hello"];
    let done = place.run(call.to_vec());
    done.failed(1, &["error: timeout", "300 ms"]);
}

#[test]
fn wrong_usage_ends_with_2() {
    let place = Place::new();
    place.run(words(&["fixture", "echo", "message=a", "message=b"])).failed(2, &["given twice"]);
    place.run(words(&["fixture", "echo", "{\"a\":1,\"a\":2}"])).failed(2, &["usage"]);
    place.run(["call"]).failed(2, &["Usage"]);
    place.run(["no-such-command"]).failed(2, &[]);
    place.run(words(&["Not-An-Alias", "echo"])).failed(2, &["not a valid server name"]);
}

#[test]
fn faulty_files_are_reported_with_name_place_and_remedy() {
    let place = Place::new();
    place.write("mcp.json", "{servers: {}}");
    place.run(words(&["fixture", "echo"])).failed(1, &["mcp.json", "line 1", "double quotes"]);
    // A comma after the last element is a fault of JSON.
    place.write("mcp.json", "{\"servers\": {},}");
    place.run(words(&["fixture", "echo"])).failed(1, &["mcp.json", "it has none"]);
    place.write("mcp.json", r#"{"severs": {}}"#);
    place.run(words(&["fixture", "echo"])).failed(1, &["mcp.json", "`severs`", "`servers`"]);
    place.write("mcp.json", r#"{"servers": {"fixture": {"transport": "stdio", "comand": "x"}}}"#);
    let told = ["mcp.json", "servers.fixture", "command"];
    place.run(words(&["fixture", "echo"])).failed(1, &told);
    place.run(["call", "--config", "none.json", "fixture", "echo"]).failed(1, &["none.json"]);
}

/// E63.
#[test]
fn a_missing_npx_is_an_error_row_with_its_remedy() {
    let place = Place::with(&json!({
        "fixture": fixture_entry(),
        "remote": { "transport": "stdio", "command": "npx", "args": ["-y", "some-package"] },
    }));
    let mut command = place.command(["tools", "--config", "mcp.json", "--json"]);
    let done = crate::support::Done::from(command.env("PATH", place.path("")).output().unwrap());
    let servers = done.succeeded().json()["data"]["servers"].clone();
    assert_eq!(servers[0]["status"], "ready");
    assert_eq!(servers[1]["status"], "error");
    assert_eq!(servers[1]["error"]["kind"], "transport_error");
    let message = servers[1]["error"]["message"].as_str().unwrap();
    assert!(message.contains("npx") && message.contains("install"), "{message}");
}

#[test]
fn tools_are_a_table_with_error_rows() {
    let place = Place::with(&json!({
        "fixture": fixture_entry(),
        "broken": { "transport": "stdio" },
    }));
    let done = place.run(["tools", "--config", "mcp.json"]).succeeded();
    let has = |words: &[&str]| {
        done.stdout.lines().any(|line| words.iter().all(|word| line.contains(word)))
    };
    assert!(has(&["SERVER", "TOOL", "DESCRIPTION"]), "{done:?}");
    assert!(has(&["fixture", "echo", "Returns the message"]), "{done:?}");
    assert!(has(&["broken", "error", "command"]), "{done:?}");
    let done = place.run(["tools", "--config", "mcp.json", "fixture", "--json"]).succeeded();
    assert_eq!(done.json()["data"]["servers"].as_array().unwrap().len(), 1);
}

/// A person sees the arguments of a tool, and the call that is shown works as it is.
#[test]
fn one_tool_is_shown_with_its_arguments_and_a_call_that_works() {
    let place = Place::new();
    let words = ["tools", "--config", "mcp.json", "fixture"];
    let shown = |more: &[&str]| place.run([&words[..], more].concat());
    let page = shown(&["echo"]).succeeded().stdout;
    assert!(page.starts_with("fixture echo\n  Returns the message\n\nArguments:\n"), "{page}");
    assert!(page.contains("\n  message  string, required\n      The text to return\n"), "{page}");
    let data = shown(&["add", "--json"]).succeeded().json()["data"].clone();
    assert_eq!((&data["alias"], &data["tool"]["name"]), (&json!("fixture"), &json!("add")));
    assert_eq!(data["arguments"].as_array().unwrap().len(), 2);
    for tool in ["echo", "add"] {
        let example = shown(&[tool, "--quiet"]).succeeded().stdout;
        let call: Vec<_> = example.split_whitespace().collect();
        assert_eq!(call[..2], ["narthex", "call"], "{example}");
        place.run(call[1..].to_vec()).succeeded();
    }
    shown(&["ecko"])
        .failed(1, &["not_found", "`fixture` has no tool `ecko`", "did you mean", "echo"]);
    let none = shown(&["zzzzzzzz"]).failed(1, &["list them with `narthex tools fixture --config"]);
    assert!(none.stdout.is_empty(), "{none:?}");
}

/// The answer of a call goes to standard output, its progress to standard error.
#[test]
fn progress_is_printed_on_standard_error() {
    let done = Place::new().run(words(&["fixture", "echo", "message=x"])).succeeded();
    assert!(done.stderr.contains("fixture (narthex-fixture …)…"), "{done:?}");
}

#[test]
fn help_and_completions_work_without_any_file() {
    let place = Place::new();
    assert!(place.run(["--help"]).succeeded().stdout.contains("--json"));
    for command in ["up", "call", "tools", "status", "connect", "trust", "completions"] {
        let done = place.run([command, "--help"]).succeeded();
        assert!(done.stdout.contains("Global flags: narthex --help"), "{command}");
    }
    assert!(place.run(["completions", "bash"]).succeeded().stdout.contains("narthex"));
    let completions = place.run(["completions", "zsh", "--json"]).succeeded().json();
    assert_eq!((&completions["ok"], &completions["data"]["shell"]), (&json!(true), &json!("zsh")));
    assert!(completions["data"]["script"].as_str().unwrap().contains("narthex"));
    let wrong = place.run(["call", "--no-such-flag", "--json"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.json()["error"].to_string().contains("--no-such-flag"), "{wrong:?}");
}
