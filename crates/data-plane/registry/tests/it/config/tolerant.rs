//! Entries of the tolerant document, as other programs write it.

use super::*;

/// C24: the shapes of desktop programs, command-line programs and editors.
#[test]
fn c24_files_of_other_programs_load() {
    let config = load(
        r#"{ "mcpServers": {
          "files": { "command": "npx", "args": ["-y", "files"], "env": { "A": "1" }, "cwd": "w" },
          "typed": { "type": "stdio", "command": "true" },
          "web": { "url": "https://a.test/mcp", "headers": { "X-A": "1" } },
          "s": { "type": "sse", "url": "https://b.test/sse" },
          "h": { "transport": "streamable-http", "url": "https://c.test/mcp" },
          "camel": { "type": "streamableHttp", "url": "https://d.test/mcp" },
          "http": { "type": "http", "url": "https://e.test/mcp" },
          "windy": { "serverUrl": "https://f.test/mcp" } } }"#,
    )
    .unwrap();
    assert_eq!(config.warnings, []);
    let transports: Vec<&str> =
        config.entries.into_iter().map(|entry| server(entry).transport().as_str()).collect();
    assert_eq!(transports, ["stdio", "stdio", "http", "sse", "http", "http", "http", "http"]);
}

#[test]
fn d7_plain_variables_are_rewritten_with_a_warning() {
    let (read, warnings) = foreign(
        r#"{ "command": "true", "args": ["${HOME}", "${NO:-d}", "${workspaceFolder}"],
             "env": { "T": "${KEY}" } }"#,
    );
    let target = stdio(read);
    assert_eq!(target.args, ["/home/ada", "d", "/repo"]);
    assert_eq!(target.env["T"].expose(), "k-123");
    assert_warned(&warnings, &["mcpServers.x.args[0]", "`${HOME}` is read as `${env:HOME}`"]);
    assert_warned(&warnings, &["mcpServers.x.args[1]", "`${NO}`"]);
    assert_warned(&warnings, &["mcpServers.x.args[2]", "`${workspaceRoot}`"]);
    assert_warned(&warnings, &["mcpServers.x.env.T"]);
}

#[test]
fn e114_a_missing_plain_variable_is_a_fault_with_its_name() {
    let message = fault(foreign(r#"{ "command": "true", "args": ["${NO_SUCH}"] }"#).0);
    assert!(message.error.message.contains("`NO_SUCH` is not set"), "{}", message.error);
}

#[test]
fn s30_rewritten_variables_are_not_expanded_twice_either() {
    let (read, _) = foreign(r#"{ "command": "true", "args": ["${NESTED}"] }"#);
    assert_eq!(stdio(read).args, ["${env:KEY}"]);
}

#[test]
fn e57_servers_that_a_file_disables_are_read_as_disabled() {
    for json in
        [r#"{ "command": "true", "disabled": true }"#, r#"{ "command": "true", "enabled": false }"#]
    {
        let (read, warnings) = foreign(json);
        assert!(server(read).is_disabled, "{json}");
        assert_warned(&warnings, &["mcpServers.x", "disabled by this file"]);
    }
}

#[test]
fn keys_of_other_programs_cause_one_warning_each() {
    let config = load(
        r#"{ "inputs": [], "globalShortcut": "", "mcpServers": {
             "a": { "command": "true", "autoApprove": [], "gallery": true },
             "b": { "command": "true", "autoApprove": ["x"] } } }"#,
    )
    .unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_warned(&warnings, &["`inputs`, `globalShortcut`"]);
    assert_warned(&warnings, &["`autoApprove`", "`mcpServers.a`, `mcpServers.b`"]);
    assert_warned(&warnings, &["`gallery`"]);
    assert_eq!(warnings.len(), 3);
}

/// D1, E83: any name becomes an alias; a name that is a valid alias keeps its spelling.
#[test]
fn d1_names_are_converted_with_a_warning_and_never_shared() {
    let config = load(
        r#"{ "mcpServers": { "My Server": { "command": "a" }, "my-server": { "command": "b" },
             "My.Other": { "command": "c" }, "my other": { "command": "d" } } }"#,
    )
    .unwrap();
    let warnings: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    assert_warned(&warnings, &["mcpServers[\"My.Other\"]", "called `my-other` here"]);
    assert_eq!(warnings.len(), 1);
    let names: Vec<String> = config
        .entries
        .iter()
        .map(|entry| match entry {
            Entry::Server(server) => server.alias.to_string(),
            Entry::Fault(fault) => format!("{}!", fault.name),
        })
        .collect();
    assert_eq!(names, ["My Server!", "my-server", "my-other", "my other!"]);
    let message = fault(config.entries[3].clone()).error.message;
    assert!(message.contains("another server becomes `my-other` as well; rename"), "{message}");
}

#[test]
fn e110_faults_of_foreign_entries_are_reported() {
    for (json, part) in [
        ("{}", "neither a command nor a url"),
        (r#"{ "command": "a", "url": "https://x" }"#, "both a command and a url"),
        (r#"{ "type": "ws", "url": "wss://x" }"#, "`mcpServers.x.type`: unknown transport `ws`"),
        (r#"{ "type": "http" }"#, "the url is missing"),
        (r#"{ "type": 7 }"#, "`mcpServers.x.type`: expected `stdio`"),
        (r#"{ "serverUrl": "x" }"#, "`mcpServers.x.serverUrl`: the url cannot be used"),
        ("[]", "expected an object, found an array"),
        (r#"{ "command": "a", "args": ["${input:t}"] }"#, "`${input:t}` is not a placeholder"),
    ] {
        let message = fault(foreign(json).0).error.message;
        assert!(message.contains(part), "{json}: {message}");
    }
}

#[test]
fn an_auth_block_of_narthex_counts_and_a_foreign_block_is_ignored() {
    let json = r#"{ "url": "https://x", "auth": { "mode": "apiKey", "key": "${KEY}" } }"#;
    assert_eq!(http(foreign(json).0).auth.mode(), "apiKey");
    let (read, warnings) = foreign(r#"{ "url": "https://x", "auth": { "CLIENT_ID": "c" } }"#);
    assert_eq!(http(read).auth.mode(), "none");
    assert_warned(&warnings, &["mcpServers.x.auth", "ignored"]);
}

/// R-E21, R-E24: the keys of a `mcp.yaml`; `transport_type` counts before `type`, in any case.
#[test]
fn r_e24_transport_type_wins_over_type() {
    for (json, transport) in [
        (r#"{ "transport_type": "STDIO", "type": "http", "command": "true" }"#, "stdio"),
        (r#"{ "type": "stdio", "transport_type": "Http", "url": "https://a.test" }"#, "http"),
        (r#"{ "type": "sse", "transportType": "http", "url": "https://a.test" }"#, "http"),
    ] {
        let (read, _) = foreign(json);
        assert_eq!(server(read).transport().as_str(), transport, "{json}");
    }
    for (json, key) in [
        (r#"{ "transport_type": "stdio", "url": "https://a.test" }"#, "the command is missing"),
        (r#"{ "transport_type": "http", "command": "true" }"#, "the url is missing"),
    ] {
        let message = fault(foreign(json).0).error.message;
        assert!(message.contains(key), "{message}");
    }
    let (read, warnings) = foreign(
        r#"{ "command": "true", "transport_type": "stdio", "mount_timeout": "3s",
             "request_timeout": "7s", "max_output_bytes": 9 }"#,
    );
    let read = server(read);
    assert_eq!(read.mount_timeout, Some(std::time::Duration::from_secs(3)));
    assert_eq!(read.timeout, Some(std::time::Duration::from_secs(7)));
    assert_eq!(read.output.bytes.map(std::num::NonZeroU64::get), Some(9));
    assert_eq!(warnings, [] as [String; 0]);
}

/// X-M1: such files are those of programs that reach narthex by this entry.
#[test]
fn x_m1_an_entry_for_narthex_itself_is_skipped() {
    let config = load(
        r#"{ "mcpServers": {
          "narthex": { "command": "narthex", "args": ["connect"] },
          "files": { "command": "true" } } }"#,
    );
    let config = config.unwrap();
    assert_eq!(config.entries.len(), 1);
    assert_eq!(config.entries[0].name(), "files");
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_warned(&warnings, &["mcpServers.narthex", "narthex itself"]);
}
