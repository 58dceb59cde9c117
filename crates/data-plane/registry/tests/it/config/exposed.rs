//! Rules for the items of a server that callers may see.

use narthex_model::Exposed;

use super::{assert_warned, entry, fault, foreign, server};

fn exposed(json: &str) -> Exposed {
    let read = entry(&format!(r#"{{"transport":"stdio","command":"true",{json}}}"#)).0;
    let exposed = *server(read).exposed;
    let shared = foreign(&format!(r#"{{"command":"true",{json}}}"#)).0;
    assert_eq!(*server(shared).exposed, exposed, "the same in both documents");
    exposed
}

/// E151: rules for tools, resources and prompts, in both documents.
#[test]
fn e151_rules_are_read_for_tools_resources_and_prompts() {
    let read = exposed(
        r#""tools": {"allow": ["get_*"], "deny": ["*_delete"]},
        "resources": {"deny": ["file:///secret/*"]}, "prompts": {"allow": []}"#,
    );
    assert!(read.tools.lets("get_user") && !read.tools.lets("get_delete"));
    assert!(!read.tools.lets("set_user"));
    assert!(read.resources.lets("file:///a") && !read.resources.lets("file:///secret/a"));
    assert!(!read.prompts.lets("any"));
    assert!(exposed(r#""disabled": false"#).is_everything());
    assert!(exposed(r#""tools": {}"#).is_everything());
    let short = exposed(r#""tools": ["get_*"]"#);
    assert!(short.tools.lets("get_user") && !short.tools.lets("set_user"));
    assert!(exposed(r#""tools": ["*"]"#).tools.lets("anything"));
}

/// E151, D38: lists that other programs write hide the same tools here, with a warning that names
/// the rule.
#[test]
fn e151_lists_of_other_programs_hide_tools() {
    let read = |json: &str| foreign(&format!(r#"{{"command":"true",{json}}}"#));
    for key in ["excludeTools", "disabledTools", "disabled_tools"] {
        let (entry, warnings) = read(&format!(r#""{key}":["delete","drop_*"]"#));
        let tools = server(entry).exposed.tools;
        assert!(tools.lets("get") && !tools.lets("delete") && !tools.lets("drop_all"), "{key}");
        assert_warned(&warnings, &[&format!("mcpServers.x.{key}"), "`tools.deny`"]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
    }
    for key in ["includeTools", "enabledTools", "enabled_tools"] {
        let (entry, warnings) = read(&format!(r#""{key}":["get"]"#));
        let tools = server(entry).exposed.tools;
        assert!(tools.lets("get") && !tools.lets("set"), "{key}");
        assert_warned(&warnings, &[&format!("mcpServers.x.{key}"), "`tools.allow`"]);
    }
    let both = r#""tools":{"deny":["b"]},"includeTools":["a","b","c"],"excludeTools":["c"]"#;
    let tools = server(read(both).0).exposed.tools;
    assert!(tools.lets("a") && !tools.lets("b") && !tools.lets("c") && !tools.lets("d"));
    let none = server(read(r#""includeTools":[]"#).0).exposed.tools;
    assert!(!none.lets("a"), "an empty list shows nothing");
    assert!(server(read(r#""excludeTools":null"#).0).exposed.is_everything());
}

/// E151: a list of another program that cannot be read, or contradicts another one, is a fault: the
/// server does not start with all tools.
#[test]
fn e151_a_foreign_list_is_never_ignored() {
    for (json, place) in [
        (r#""excludeTools":"delete""#, "excludeTools"),
        (r#""disabledTools":[1]"#, "disabledTools[0]"),
        (r#""tools":["a"],"includeTools":["b"]"#, "includeTools"),
        (r#""includeTools":["a"],"enabledTools":["b"]"#, "enabledTools"),
    ] {
        let found = fault(foreign(&format!(r#"{{"command":"true",{json}}}"#)).0).error;
        assert!(found.message.contains(&format!("`mcpServers.x.{place}`")), "{json}: {found}");
    }
}

/// E151, E109: in narthex's own document such a key is a fault that names the right one; words that
/// approve calls in other programs hide nothing there, and are reported.
#[test]
fn e151_keys_that_nearly_hide_tools_are_faults() {
    for key in ["excludeTools", "includeTools", "disabled_tools", "tool", "resource", "prompt"] {
        let json = format!(r#"{{"transport":"stdio","command":"true","{key}":["x"]}}"#);
        let found = fault(entry(&json).0).error;
        assert!(found.message.contains("did you mean `"), "{key}: {found}");
    }
    for key in ["alwaysAllow", "autoApprove", "allowedTools"] {
        let (read, warnings) = foreign(&format!(r#"{{"command":"true","{key}":["x"]}}"#));
        assert!(server(read).exposed.is_everything());
        assert_warned(&warnings, &[key]);
    }
}

/// E151: an entry with a rule that cannot be read is a fault: the rule is not ignored.
#[test]
fn e151_a_rule_that_cannot_be_read_is_a_fault_in_both_documents() {
    for (json, place) in [
        (r#""tools": "get_*""#, "tools"),
        (r#""tools": {"alow": ["get_*"]}"#, "tools.alow"),
        (r#""tools": {"allow": "get_*"}"#, "tools.allow"),
        (r#""tools": {"deny": [1]}"#, "tools.deny[0]"),
        (r#""resources": 3"#, "resources"),
        (r#""prompts": {"deny": {}}"#, "prompts.deny"),
    ] {
        let strict = entry(&format!(r#"{{"transport":"stdio","command":"true",{json}}}"#)).0;
        let shared = foreign(&format!(r#"{{"command":"true",{json}}}"#)).0;
        for (read, document) in [(strict, "servers"), (shared, "mcpServers")] {
            let found = fault(read).error;
            assert!(found.message.contains(&format!("`{document}.x.{place}`")), "{found}");
        }
    }
}
