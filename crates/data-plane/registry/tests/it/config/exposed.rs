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

/// E151: other programs' keys for such rules have no effect, and cause a warning.
#[test]
fn e151_foreign_rule_keys_cause_a_warning_with_the_right_key() {
    for key in ["includeTools", "excludeTools", "disabled_tools"] {
        let (read, warnings) = foreign(&format!(r#"{{"command":"true","{key}":["x"]}}"#));
        assert!(server(read).exposed.is_everything());
        assert_warned(&warnings, &[key, "did you mean `tools`?"]);
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
