//! Limits of calls in an entry: time, tokens and bytes.

use std::{num::NonZeroU64, time::Duration};

use narthex_model::OutputLimits;

use super::{assert_warned, entry, fault, foreign, load, server};

#[test]
fn e86_timeouts_are_cut_to_whole_milliseconds_and_clamped() {
    for (json, ms, warned) in [
        ("45000", Some(45_000), false),
        ("1500.9", Some(1_500), false),
        ("0", Some(1), true),
        ("-5", Some(1), true),
        ("600001", Some(600_000), true),
        ("1e300", Some(600_000), true),
        ("null", None, false),
        ("\"45000\"", None, true),
        ("{}", None, true),
    ] {
        let json = format!(r#"{{"transport":"stdio","command":"true","timeoutMs":{json}}}"#);
        let (read, warnings) = entry(&json);
        assert_eq!(server(read).timeout, ms.map(Duration::from_millis), "{json}");
        assert_eq!(!warnings.is_empty(), warned, "{json}: {warnings:?}");
    }
}

/// R-E23, E86 and document 004: a duration with its unit is read as a limit; a bare number has
/// none.
#[test]
fn e86_a_duration_is_read_as_a_timeout() {
    for (json, ms) in [
        ("\"30s\"", Some(30_000)),
        ("\"1.5s\"", Some(1_500)),
        ("\"250ms\"", Some(250)),
        ("\"2m\"", Some(120_000)),
        ("\"1h\"", Some(600_000)),
        ("\"0s\"", None),
        ("\"-3s\"", None),
        ("30", None),
    ] {
        let json = format!(r#"{{"transport":"stdio","command":"true","timeout":{json}}}"#);
        assert_eq!(server(entry(&json).0).timeout, ms.map(Duration::from_millis), "{json}");
    }
}

/// R-E23: an invalid duration is a fault of its entry in narthex's own file, and a warning in a
/// shared file. Zero and negative durations mean the default.
#[test]
fn r_e23_a_bad_duration_is_a_fault_with_its_place() {
    for bad in ["soon", "30 parsecs", "s", "", "1e400s"] {
        let json = format!(r#"{{"transport":"stdio","command":"true","timeout":"{bad}"}}"#);
        let found = fault(entry(&json).0);
        assert!(found.error.message.contains("`servers.x.timeout`"), "{}", found.error);
        assert!(found.error.message.contains("`500ms` or `30s`"), "{}", found.error);
        let json = format!(r#"{{"command":"true","timeout":"{bad}"}}"#);
        let (read, warnings) = foreign(&json);
        assert_eq!(server(read).timeout, None);
        assert_warned(&warnings, &["mcpServers.x.timeout", "is not a duration"]);
    }
    let (_, warnings) = entry(r#"{"transport":"stdio","command":"true","timeout":"0s"}"#);
    assert_warned(&warnings, &["servers.x.timeout", "the default is used"]);
}

fn output(json: &str) -> (OutputLimits, Vec<String>) {
    let (read, warnings) = entry(&format!(r#"{{"transport":"stdio","command":"true",{json}}}"#));
    let output = server(read).output;
    let shared = foreign(&format!(r#"{{"command":"true",{json}}}"#)).0;
    assert_eq!(server(shared).output, output, "the same in both documents");
    (output, warnings)
}

fn limits(tokens: u64, bytes: u64) -> OutputLimits {
    OutputLimits { tokens: NonZeroU64::new(tokens), bytes: NonZeroU64::new(bytes) }
}

/// D23, R-D4: limits of output in both spellings, whole and above zero.
#[test]
fn d23_limits_of_output_are_read_in_both_spellings() {
    for (json, expected, warned) in [
        (r#""maxOutputTokens":4096"#, limits(4096, 0), false),
        (r#""max_output_tokens":4096.9"#, limits(4096, 0), false),
        (r#""maxOutputBytes":65536"#, limits(0, 65_536), false),
        (r#""max_output_bytes":1,"maxOutputTokens":2"#, limits(2, 1), false),
        (r#""maxOutputTokens":1e300"#, limits(9_007_199_254_740_991, 0), false),
        (r#""maxOutputTokens":0"#, limits(0, 0), true),
        (r#""maxOutputTokens":-5"#, limits(0, 0), true),
        (r#""maxOutputTokens":0.5"#, limits(0, 0), true),
        (r#""maxOutputTokens":7,"max_output_tokens":8"#, limits(7, 0), true),
        (r#""maxOutputTokens":null"#, limits(0, 0), false),
    ] {
        let (found, warnings) = output(json);
        assert_eq!(found, expected, "{json}");
        assert_eq!(!warnings.is_empty(), warned, "{json}: {warnings:?}");
    }
}

#[test]
fn d23_a_limit_of_output_that_is_no_number_is_a_fault() {
    let found =
        fault(entry(r#"{"transport":"stdio","command":"true","maxOutputTokens":"many"}"#).0);
    assert!(found.error.message.contains("`servers.x.maxOutputTokens`"), "{}", found.error);
    let (read, warnings) = foreign(r#"{"command":"true","maxOutputTokens":"many"}"#);
    assert_eq!(server(read).output, limits(0, 0));
    assert_warned(&warnings, &["mcpServers.x.maxOutputTokens", "a whole number above 0"]);
}

/// R-M6: one server's entry has no effect on another's.
#[test]
fn r_m6_limits_of_one_server_do_not_affect_other_servers() {
    let text = r#"{"servers": {
        "one": {"transport":"stdio","command":"a","timeout":"15s","maxOutputTokens":2048},
        "two": {"transport":"stdio","command":"b","timeout":"120s","maxOutputTokens":16384},
        "six": {"transport":"stdio","command":"c"}}}"#;
    let read: Vec<_> = load(text).unwrap().entries.into_iter().map(server).collect();
    let found: Vec<_> = read.iter().map(|one| (one.timeout, one.output)).collect();
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    let expected = [
        (seconds(15), limits(2048, 0)),
        (seconds(120), limits(16_384, 0)),
        (None, OutputLimits::default()),
    ];
    assert_eq!(found, expected);
}

/// R-M11, R-D4: the limit of connecting is independent of the limit of calls.
#[test]
fn r_m11_the_limit_of_connecting_is_independent_of_the_call_limit() {
    for (json, ms) in [("\"2s\"", Some(2_000)), ("\"0s\"", None), ("\"750ms\"", Some(750))] {
        let json = format!(r#"{{"transport":"stdio","command":"true","mountTimeout":{json}}}"#);
        let read = server(entry(&json).0);
        assert_eq!(read.mount_timeout, ms.map(Duration::from_millis), "{json}");
        assert_eq!(read.timeout, None);
    }
    let other = r#"{"transport":"stdio","command":"true","mount_timeout":"3s"}"#;
    assert_eq!(server(entry(other).0).mount_timeout, Some(Duration::from_secs(3)));
    for bad in ["5", "\"soon\""] {
        let json = format!(r#"{{"transport":"stdio","command":"true","mountTimeout":{bad}}}"#);
        let found = fault(entry(&json).0);
        assert!(found.error.message.contains("`servers.x.mountTimeout`"), "{}", found.error);
    }
}

fn extends(json: &str) -> (Option<Duration>, Vec<String>) {
    let entry = entry(&format!(r#"{{"transport":"stdio","command":"true",{json}}}"#));
    (server(entry.0).progress_extends, entry.1)
}

/// D30: the value for extension by progress is a time, `true` or `false`, under either spelling of
/// the key. A value out of range is limited to the range, and reported with its place.
#[test]
fn d30_the_progress_extension_is_read_in_both_spellings() {
    for (value, ms, warned) in [
        ("true", Some(600_000), false),
        ("false", None, false),
        ("null", None, false),
        ("45000", Some(45_000), false),
        ("1500.9", Some(1_500), false),
        ("\"10m\"", Some(600_000), false),
        ("\"2h\"", Some(3_600_000), true),
        ("3600001", Some(3_600_000), true),
        ("0", None, true),
        ("-5", None, true),
        ("\"0s\"", None, true),
    ] {
        for key in ["progressExtends", "progress_extends"] {
            let (found, warnings) = extends(&format!(r#""{key}":{value}"#));
            assert_eq!(found, ms.map(Duration::from_millis), "{value}");
            assert_eq!(!warnings.is_empty(), warned, "{value}: {warnings:?}");
            if warned {
                assert_warned(&warnings, &[&format!("servers.x.{key}")]);
            }
        }
    }
    let (_, warnings) = extends(r#""progressExtends":0"#);
    assert_warned(&warnings, &["servers.x.progressExtends", "progress extends no call"]);
}

/// D30: an unknown value is a fault of its entry in narthex's own file, and a warning in a shared
/// file. A value of `autoRecover` other than true and false is a fault in both.
#[test]
fn d30_invalid_values_are_reported_with_their_field() {
    for (key, value, wanted) in [
        ("progressExtends", "\"soon\"", "`500ms` or `30s`"),
        ("progressExtends", "[]", "a duration such as `10m`, or true or false"),
        ("progress_extends", "{}", "a number of ms"),
        ("autoRecover", "\"no\"", "true or false"),
        ("auto_recover", "1", "true or false"),
    ] {
        let json = format!(r#"{{"transport":"stdio","command":"true","{key}":{value}}}"#);
        let found = fault(entry(&json).0).error.message;
        assert!(found.contains(&format!("`servers.x.{key}`")), "{found}");
        assert!(found.contains(wanted), "{found}");
        let (read, warnings) = foreign(&format!(r#"{{"command":"true","{key}":{value}}}"#));
        let place = format!("mcpServers.x.{key}");
        match key.starts_with("progress") {
            true => {
                assert_eq!(server(read).progress_extends, None, "{value}");
                assert_warned(&warnings, &[&place]);
            }
            // A server that recovers against its owner's setting is worse than no server.
            false => assert!(fault(read).error.message.contains(&place), "{key}: {value}"),
        }
    }
    for key in ["autoRecover", "auto_recover"] {
        for value in [true, false] {
            let json = format!(r#"{{"transport":"stdio","command":"true","{key}":{value}}}"#);
            assert_eq!(server(entry(&json).0).recovers, value, "{json}");
        }
    }
    assert!(server(entry(r#"{"transport":"stdio","command":"true"}"#).0).recovers);
}
