//! Entries of the strict document.

use std::path::PathBuf;

use serde_json::json;

use super::*;

#[test]
fn e110_each_fault_of_an_entry_has_its_own_message() {
    assert_refused("7", &["`servers.x`: expected an object, found a number"]);
    assert_refused(r#"{ "transport": "http" }"#, &["the url is missing"]);
    assert_refused(r#"{ "transport": "http", "url": "" }"#, &["`servers.x.url`: the url is miss"]);
    assert_refused(r#"{ "transport": "stdio" }"#, &["the command is missing"]);
    assert_refused(r#"{ "command": "true" }"#, &["add `\"transport\": \"stdio\"`"]);
    assert_refused(r#"{ "url": "https://x" }"#, &["add `\"transport\": \"http\"`"]);
    assert_refused(
        r#"{ "transport": "ws", "url": "https://x" }"#,
        &["`servers.x.transport`: unknown transport `ws`", "use `stdio`, `http` or `sse`"],
    );
    assert_refused(
        r#"{ "transport": 1 }"#,
        &["`servers.x.transport`: expected `stdio`, `http` or `sse`, found a number"],
    );
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "args": "-y" }"#,
        &["`servers.x.args`: expected an array of strings, found a string"],
    );
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "env": ["A=1"] }"#,
        &["`servers.x.env`: expected an object of strings, found an array"],
    );
    assert_refused(
        r#"{ "transport": "stdio", "command": ["true"] }"#,
        &["`servers.x.command`: expected a string, found an array"],
    );
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "env": { "A=B": "1" } }"#,
        &["`servers.x.env[\"A=B\"]`", "environment variable"],
    );
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "args": ["a\u0000b"] }"#,
        &["`servers.x.args[0]`", "NUL"],
    );
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "disabled": "yes" }"#,
        &["`servers.x.disabled`", "true or false"],
    );
}

/// D9: all faults are reported at once, each with its path and a code for programs.
#[test]
fn d9_all_faults_of_an_entry_are_reported_together() {
    let fault = fault(
        entry(
            r#"{ "transport": "http", "url": "ftp://x", "headers": { "A B": "1" },
                 "auth": { "mode": "wat" } }"#,
        )
        .0,
    );
    assert_eq!(fault.name, "x");
    assert_eq!(fault.error.kind, CallErrorKind::TransportError);
    let details = fault.error.details.unwrap();
    let told: Vec<(&str, &str)> = details["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["path"].as_str().unwrap(), p["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("servers.x.auth.mode", "auth_mode_unknown"),
            ("servers.x.url", "url_invalid"),
            ("servers.x.headers[\"A B\"]", "header_name_invalid"),
        ]
    );
    assert_eq!(details["file"], "/repo/mcp.json");
}

/// D9: a variable that is not set is named for programs, too.
#[test]
fn d9_a_variable_that_is_not_set_is_data_of_its_problem() {
    let fault = fault(
        entry(
            r#"{ "transport": "stdio", "command": "true", "args": "-y",
                 "env": { "A": "${env:NO_SUCH_A}", "B": "${env:NO_SUCH_B}" } }"#,
        )
        .0,
    );
    let details = fault.error.details.unwrap();
    let problems = details["problems"].as_array().unwrap().iter();
    let mut told: Vec<_> = problems.map(|one| (&one["code"], one.get("variable"))).collect();
    told.sort_unstable_by_key(|(_, variable)| variable.map(ToString::to_string));
    let missing = json!("variable_missing");
    let (wrong, a, b) = (json!("type_wrong"), json!("NO_SUCH_A"), json!("NO_SUCH_B"));
    assert_eq!(told, [(&wrong, None), (&missing, Some(&a)), (&missing, Some(&b))], "{details}");
}

#[test]
fn e83_names_and_urls_of_file_entries_are_checked() {
    let config = load(r#"{ "servers": { "My Server": {}, "a__b": {}, "": {} } }"#).unwrap();
    let messages: Vec<String> =
        config.entries.into_iter().map(|entry| fault(entry).error.message).collect();
    assert!(messages[0].contains("`servers[\"My Server\"]`"), "{}", messages[0]);
    assert!(messages[0].contains("for example `my-server`"), "{}", messages[0]);
    assert!(messages[1].contains("`servers.a__b`: `a__b` is not a valid"), "{}", messages[1]);
    assert!(messages[2].contains("`servers[\"\"]`"), "{}", messages[2]);
    for url in ["x.test/mcp", "ftp://x.test", "file:///x", "https://", "https://x.test/ y", "/mcp"]
    {
        let json = format!("{{\"transport\": \"http\", \"url\": \"{url}\"}}");
        assert_refused(&json, &["`servers.x.url`: the url cannot be used"]);
    }
    for url in ["https://x", "http://127.0.0.1:9/mcp?a=b", "http://[::1]:9/"] {
        let json = format!("{{\"transport\": \"http\", \"url\": \"{url}\"}}");
        assert_eq!(http(entry(&json).0).url, url);
    }
}

#[test]
fn e5_the_three_transports() {
    let name = |json| server(entry(json).0).transport().as_str();
    assert_eq!(name(r#"{ "transport": "stdio", "command": "true" }"#), "stdio");
    assert_eq!(name(r#"{ "transport": "http", "url": "https://x" }"#), "http");
    assert_eq!(name(r#"{ "transport": "sse", "url": "https://x" }"#), "sse");
}

#[test]
fn e113_placeholders_expand_in_every_string() {
    let target = stdio(
        entry(
            r#"{ "transport": "stdio", "command": "${env:HOME}/bin/server",
                 "args": ["--root=${workspaceRoot}", "${env:NO:-fallback}"],
                 "env": { "TOKEN": "${env:KEY}" }, "cwd": "${env:HOME}/w" }"#,
        )
        .0,
    );
    assert_eq!(target.command, "/home/ada/bin/server");
    assert_eq!(target.args, ["--root=/repo", "fallback"]);
    assert_eq!(target.env["TOKEN"].expose(), "k-123");
    assert_eq!(target.working_dir, Some(PathBuf::from("/home/ada/w")));
    let target = http(
        entry(
            r#"{ "transport": "http", "url": "https://${env:HOST}/mcp",
                 "headers": { "X-Tenant": "t-${env:KEY}" } }"#,
        )
        .0,
    );
    assert_eq!(target.url, "https://api.test/mcp");
    assert_eq!(target.headers["X-Tenant"].expose(), "t-k-123");
}

#[test]
fn e114_a_missing_variable_is_a_fault_with_its_name() {
    assert_refused(
        r#"{ "transport": "stdio", "command": "true", "env": { "A": "${env:NO_SUCH}" } }"#,
        &["`servers.x.env.A`", "`NO_SUCH` is not set", "${env:NO_SUCH:-…}"],
    );
    assert_refused(
        r#"{ "transport": "http", "url": "https://x", "auth": {
             "mode": "apiKey", "key": "${env:NO_SUCH}" } }"#,
        &["`servers.x.auth.key`", "`NO_SUCH` is not set"],
    );
}

#[test]
fn e115_bad_and_unknown_placeholders_are_refused() {
    let with =
        |text| format!(r#"{{ "transport": "stdio", "command": "true", "args": ["{text}"] }}"#);
    assert_refused(&with("${env:}"), &["`servers.x.args[0]`", "`${env:}` names no variable"]);
    assert_refused(&with("${HOME}"), &["`${HOME}` is not a placeholder", "write `${env:HOME}`"]);
    assert_refused(&with("${env:HOME"), &["no closing"]);
    assert_eq!(stdio(entry(&with("$${HOME}")).0).args, ["${HOME}"]);
}

/// S30: text that came out of a variable is never expanded.
#[test]
fn s30_a_value_is_never_expanded_twice() {
    let json = r#"{ "transport": "stdio", "command": "true", "args": ["${env:NESTED}"] }"#;
    assert_eq!(stdio(entry(json).0).args, ["${env:KEY}"]);
}

/// S27: values of secret variables are recognized as secret, wherever they were filled in.
#[test]
fn s27_values_of_secret_variables_are_secret_in_every_field() {
    let told = |json: &str| -> Vec<String> {
        let secrets = server(entry(json).0).secrets();
        secrets.iter().map(|secret| secret.expose().to_owned()).collect()
    };
    let program = r#"{ "transport": "stdio", "command": "true", "args": ["--at=${env:HOME}",
        "--key=${env:KEY}"], "env": { "A": "${env:HOST}" } }"#;
    assert_eq!(told(program), ["k-123"]);
    let address = r#"{ "transport": "http", "url": "https://${env:HOST}/mcp?k=${env:KEY}" }"#;
    assert_eq!(told(address), ["k-123"]);
}

#[test]
fn e116_other_values_become_text_element_by_element() {
    let (read, warnings) = entry(
        r#"{ "transport": "stdio", "command": "true",
             "args": [1, 1.0, 2.5, true, null, ["a"], "b c"], "env": { "N": 7, "B": false } }"#,
    );
    let target = stdio(read);
    assert_eq!(target.args, ["1", "1", "2.5", "true", "null", "[\"a\"]", "b c"]);
    assert_eq!((target.env["N"].expose(), target.env["B"].expose()), ("7", "false"));
    assert_warned(&warnings, &["args[4]", "null is passed on"]);
    assert_warned(&warnings, &["args[5]", "an array is passed on"]);
}

/// E53: arguments keep the boundaries that the file gives them.
#[test]
fn e53_arguments_keep_their_boundaries() {
    let args = |json: &str| {
        stdio(entry(&format!(r#"{{ "transport": "stdio", "command": "t", "args": {json} }}"#)).0)
            .args
    };
    assert_ne!(args(r#"["a b"]"#), args(r#"["a", "b"]"#));
}

#[test]
fn e109_unknown_keys_of_an_entry_are_warnings_naming_the_nearest() {
    let (read, warnings) = entry(
        r#"{ "transport": "stdio", "command": "true", "timeoutMS": 5, "arg": [], "zzzz": 1 }"#,
    );
    server(read);
    assert_warned(&warnings, &["servers.x", "`timeoutMS`", "`timeoutMs`?"]);
    assert_warned(&warnings, &["`arg`", "did you mean `args`?"]);
    assert_warned(&warnings, &["`zzzz` is ignored"]);
}

/// A misspelt key of an entry that cannot be used is a fault of the row, in place of the fault that
/// the meant key is missing.
#[test]
fn e109_a_misspelt_key_is_reported_instead_of_the_missing_key() {
    for (json, told, hidden) in [
        (
            r#"{ "transport": "stdio", "comand": "true" }"#,
            "`comand` is not known here; did you mean `command`?",
            "missing",
        ),
        (
            r#"{ "transport": "http", "ulr": "https://x" }"#,
            "`ulr` is not known here; did you mean `url`?",
            "missing",
        ),
        (
            r#"{ "type": "http", "url": "https://x" }"#,
            "`type` is not known here; did you mean `transport`?",
            "missing",
        ),
        (
            r#"{ "transport": "http", "url": "https://x",
                 "auth": { "mode": "apiKey", "key": 1, "header": "X-Key" } }"#,
            "`header` is not known here; did you mean `headerName`?",
            "valueRef",
        ),
    ] {
        assert_refused(json, &[told]);
        let (Entry::Fault(fault), warnings) = entry(json) else { panic!("{json}") };
        assert!(!fault.error.message.contains(hidden), "{}", fault.error.message);
        assert!(warnings.is_empty(), "said twice: {warnings:?}");
    }
    assert_refused(
        r#"{ "comand": "true" }"#,
        &["did you mean `command`?", "add `\"transport\": \"stdio\"`"],
    );
}

/// D10, X-M53, E109: a misspelt restriction of a server is not ignored.
#[test]
fn d10_a_misspelt_restriction_starts_nothing() {
    for (key, meant) in [
        ("toolScopes", "tool_scopes"),
        ("toolscopes", "tool_scopes"),
        ("resourceScopes", "resource_scopes"),
        ("prompt_scope", "prompt_scopes"),
        ("pinDefinition", "pinDefinitions"),
        ("pin-definitions", "pinDefinitions"),
        ("onflagged", "onFlagged"),
    ] {
        let json = format!(r#"{{ "transport": "stdio", "command": "true", "{key}": {{}} }}"#);
        assert_refused(&json, &[&format!("`{key}` is not known"), &format!("mean `{meant}`?")]);
    }
}

/// E16, E138: a secret in the file is advised against and never shown.
#[test]
fn e16_secrets_in_the_file_cause_warnings_and_are_never_printed() {
    let (read, warnings) = entry(
        r#"{ "transport": "stdio", "command": "true", "args": ["ghp_0123456789"],
             "env": { "API_TOKEN": "s3cret-s3cret", "OTHER_TOKEN": "${env:KEY}" } }"#,
    );
    assert_warned(&warnings, &["servers.x.env.API_TOKEN", "${env:NAME}"]);
    assert_warned(&warnings, &["servers.x.args[0]", "`env`"]);
    assert_eq!(warnings.len(), 2);
    assert!(!format!("{read:?}{warnings:?}").contains("s3cret"));
    let (_, warnings) = entry(
        r#"{ "transport": "http", "url": "https://u:s3cret@x.test",
             "headers": { "Authorization": "Bearer s3cret" } }"#,
    );
    assert_warned(&warnings, &["servers.x.headers.Authorization"]);
    assert_warned(&warnings, &["servers.x.url", "password"]);
    assert!(!format!("{warnings:?}").contains("s3cret"));
}

#[test]
fn headers_that_cannot_be_sent_are_refused() {
    let with = |headers: &str| {
        format!(r#"{{ "transport": "http", "url": "https://x", "headers": {headers} }}"#)
    };
    assert_refused(&with(r#"{ "X": "${env:LINE}" }"#), &["`servers.x.headers.X`", "line breaks"]);
    assert_refused(&with(r#"{ "X-A": "1", "x-a": "2" }"#), &["`x-a` is set twice"]);
    assert_refused(&with(r#"{ "X:": "1" }"#), &["not a name of an HTTP header"]);
    let (read, warnings) = entry(&with(r#"{ "Host": "y" }"#));
    assert!(http(read).headers.is_empty());
    assert_warned(&warnings, &["servers.x.headers.Host", "narthex sets"]);
}

/// R-E30: relative folders and programs start at the workspace.
#[test]
fn relative_folders_and_programs_start_at_the_workspace() {
    let target = stdio(entry(r#"{ "transport": "stdio", "command": "./s", "cwd": "sub" }"#).0);
    assert_eq!(target.working_dir, Some(PathBuf::from("/repo/sub")));
    assert_eq!(target.command, "/repo/sub/./s");
    let target = stdio(entry(r#"{ "transport": "stdio", "command": "bin/s" }"#).0);
    assert_eq!((target.command.as_str(), target.working_dir), ("/repo/bin/s", None));
}

#[test]
fn command_lines_and_fields_of_the_other_transport_cause_warnings() {
    let (_, warnings) = entry(r#"{ "transport": "stdio", "command": "npx -y s", "url": "u" }"#);
    assert_warned(&warnings, &["servers.x.command", "`args`"]);
    assert_warned(&warnings, &["servers.x.url", "ignored"]);
    let (_, warnings) = entry(r#"{ "transport": "http", "url": "https://x", "env": {} }"#);
    assert_warned(&warnings, &["servers.x.env", "ignored"]);
}

/// E57: the file itself can disable a server.
#[test]
fn e57_a_server_can_be_switched_off_in_the_file() {
    let off = r#"{ "transport": "stdio", "command": "true", "disabled": true }"#;
    assert!(server(entry(off).0).is_disabled);
    assert!(!server(entry(r#"{ "transport": "stdio", "command": "true" }"#).0).is_disabled);
}

/// X-M1: an entry in the name of the built-in server is a fault with a remedy.
#[test]
fn x_m1_an_entry_with_the_name_of_the_built_in_server_is_refused() {
    let text = r#"{ "servers": { "narthex": { "transport": "stdio", "command": "true" } } }"#;
    let (entry, _) = only(load(text).unwrap());
    let message = fault(entry).error.message;
    assert!(message.contains("built-in") && message.contains("`narthex-2`"), "{message}");
}
