//! The `confinement` block of an entry.

use narthex_model::{Confinement, FileAccess, NetworkAccess, ProcessLimits};

use super::*;

fn with(confinement: &str) -> String {
    format!(r#"{{ "transport": "stdio", "command": "true", "confinement": {confinement} }}"#)
}

fn read(confinement: &str) -> Confinement {
    *stdio(entry(&with(confinement)).0).confinement.unwrap()
}

#[test]
fn d22_each_part_is_read() {
    let read = read(
        r#"{ "filesystem": { "read": ["${workspaceRoot}", "docs"], "write": ["/var/out"] },
             "network": { "connect": [443, 8080] },
             "syscalls": "default",
             "limits": { "memoryMb": 512, "processes": 64, "openFiles": 256, "cpuSeconds": 9 },
             "bwrap": true }"#,
    );
    let files = FileAccess {
        read: vec!["/repo".into(), "/repo/docs".into()],
        write: vec!["/var/out".into()],
    };
    let limits = ProcessLimits {
        memory_mb: Some(512),
        processes: Some(64),
        open_files: Some(256),
        cpu_seconds: Some(9),
    };
    let expected = Confinement {
        files: Some(files),
        network: NetworkAccess::Connect(vec![443, 8080]),
        filters_system_calls: true,
        limits,
        has_namespaces: true,
    };
    assert_eq!(read, expected);
}

#[test]
fn an_absent_part_limits_nothing() {
    let none = r#"{ "network": "none" }"#;
    let expected = Confinement { network: NetworkAccess::None, ..Confinement::default() };
    assert_eq!(read(none), expected);
    let plain = stdio(entry(r#"{ "transport": "stdio", "command": "true" }"#).0);
    assert_eq!(plain.confinement, None);
    // `none` also overrides a default for all entries.
    assert!(read(r#""none""#).is_none());
}

#[test]
fn strict_confinement_allows_reading_the_working_folder() {
    assert_eq!(read(r#""strict""#), Confinement::strict(Some("/repo".into())));
    let json = r#"{ "transport": "stdio", "command": "true", "cwd": "sub",
                    "confinement": "strict" }"#;
    let strict = stdio(entry(json).0).confinement.unwrap();
    assert_eq!(*strict, Confinement::strict(Some("/repo/sub".into())));
}

/// An unknown key of a confinement would let a server run unconfined, so it is a fault. Other
/// unknown keys are warnings.
#[test]
fn d22_a_misspelt_confinement_starts_nothing() {
    let refuse = |confinement: &str, parts: &[&str]| assert_refused(&with(confinement), parts);
    refuse(r#"{ "netwrok": "none" }"#, &["`servers.x.confinement`: `netwrok` is not known"]);
    refuse(r#"{ "limits": { "memory": 1 } }"#, &["confinement.limits`: `memory`", "`memoryMb`"]);
    refuse(r#"{ "filesystem": { "reads": [] } }"#, &["filesystem`: `reads`", "`read`, `write`"]);
    refuse(r#"{ "network": { "conect": [1] } }"#, &["network`: `conect`"]);
    let json = r#"{ "transport": "stdio", "command": "true", "confinment": "strict" }"#;
    assert_refused(json, &["`confinment` is not known here", "use `confinement`"]);
}

#[test]
fn each_fault_of_a_confinement_has_its_own_message() {
    let refuse = |confinement: &str, parts: &[&str]| assert_refused(&with(confinement), parts);
    refuse(r#""lax""#, &["servers.x.confinement`", "`\"none\"` or an object"]);
    refuse("true", &["servers.x.confinement`", "`\"none\"` or an object"]);
    refuse("{}", &["this object limits nothing", "`\"strict\"`"]);
    refuse(r#"{ "network": "off" }"#, &["confinement.network`", "`\"none\"`"]);
    refuse(r#"{ "network": { "connect": [0] } }"#, &["connect[0]`", "a port from 1 to 65535"]);
    refuse(r#"{ "network": { "connect": 443 } }"#, &["network.connect`", "[443]"]);
    refuse(r#"{ "network": {} }"#, &["network.connect`", "[443]"]);
    refuse(r#"{ "syscalls": "none" }"#, &["confinement.syscalls`", "`\"default\"`"]);
    refuse(r#"{ "limits": { "openFiles": 0 } }"#, &["limits.openFiles`", "a whole number from 1"]);
    refuse(r#"{ "limits": 3 }"#, &["confinement.limits`", "an object"]);
    refuse(r#"{ "bwrap": "yes" }"#, &["confinement.bwrap`", "true or false"]);
    refuse(r#"{ "filesystem": { "read": "/" } }"#, &["filesystem.read`", "an array of paths"]);
    refuse(r#"{ "filesystem": { "read": [1] } }"#, &["read[0]`", "a path"]);
}

#[test]
fn confinement_of_an_http_server_is_ignored_with_a_warning() {
    let json = r#"{ "transport": "http", "url": "https://x", "confinement": "strict" }"#;
    let (_entry, warnings) = entry(json);
    assert_warned(&warnings, &["servers.x.confinement", "ignored"]);
}
