//! Rules that are refused when they are saved, and the texts of the refusals.

use super::*;

fn faults(text: &str) -> Vec<RuleFault> {
    RuleSet::compile(text).unwrap_err().0
}

/// The only fault of a text.
fn fault(text: &str) -> RuleFault {
    let all = faults(text);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

fn compiled(text: &str) -> RuleSet {
    RuleSet::compile(text).unwrap_or_else(|faults| panic!("{text}: {faults}"))
}

/// D13: without rules there is nothing to ask.
#[test]
fn d13_no_rules_are_an_empty_set() {
    for text in ["", "  \n", "// nothing yet\n"] {
        assert!(compiled(text).is_empty());
    }
}

/// D13: everything that a rule may name.
#[test]
fn d13_rules_may_name_each_member_of_the_schema() {
    for condition in [
        r#"principal == Agent::"writer" && principal.agent_type == "orchestrator""#,
        r#"principal.is_child && principal.user == "" && principal.workspace == "team""#,
        r#"principal.name == "a" || principal.run == "b" || principal.session == "c""#,
        r#"resource in Server::"linear" || resource.server.alias == "lin""#,
        r#"resource.server.id like "lin*" && resource.name like "delete_*""#,
        r#"resource is Tool && resource == Tool::"linear/write""#,
        r#"[Server::"a", Server::"b"].contains(resource.server)"#,
        r#"context.annotations.destructiveHint && !context.annotations.readOnlyHint"#,
        r#"context.endpoint == "aggregated" && context.era == "legacy""#,
        r#"context.origin == "task""#,
        r#"context.method == "resources/subscribe""#,
        r#"context.time.hour < 8 || context.time.weekday > 5 || context.time.seconds > 1"#,
    ] {
        let set = compiled(&format!("forbid(principal, action, resource) when {{ {condition} }};"));
        assert_eq!((set.len(), set.asking.is_empty()), (1, true), "{condition}");
    }
    compiled(r#"forbid(principal, action == Action::"call", resource is Prompt);"#);
}

/// D13: the types of arguments follow from the rules' use of them.
#[test]
fn d13_arguments_are_typed_by_their_use() {
    for condition in [
        r#"context.arguments has path && context.arguments.path like "/etc/*""#,
        r#"context.arguments has count && context.arguments.count > 10"#,
        r#"context.arguments has count && -context.arguments.count < 10 + 1"#,
        r#"context.arguments has force && context.arguments.force"#,
        r#"context.arguments has force && context.arguments.force == true"#,
        r#"context.arguments has to && context.arguments.to.contains("all")"#,
        r#"context.arguments has to && context.arguments.to.containsAny(["a", "b"])"#,
        r#"context.arguments has to && context.arguments.to.isEmpty()"#,
        r#"context.arguments has kind && ["a", "b"].contains(context.arguments.kind)"#,
        r#"context.arguments has size && [1, 2].contains(context.arguments.size)"#,
        r#"context.arguments has options.force && context.arguments.options.force"#,
        r#"context.arguments has user && context.arguments.user == principal.user"#,
        r#"if context.arguments has a then context.arguments.a == "x" else false"#,
        r#"!(context.arguments has confirmed)"#,
        r#"context.arguments has "odd name" && context.arguments["odd name"] == "x""#,
    ] {
        let set = compiled(&format!("forbid(principal, action, resource) when {{ {condition} }};"));
        assert_eq!((set.plain.is_empty(), set.asking.is_empty()), (true, false), "{condition}");
    }
}

/// D13: a rule that names the built-in server's `start_agent` would match no call.
#[test]
fn d13_further_names_of_tools_are_refused() {
    for rule in [
        r#"forbid(principal, action, resource == Tool::"narthex/start_agent");"#,
        r#"forbid(principal, action, resource)
           when { resource == Tool::"narthex/start_agent" };"#,
        r#"forbid(principal, action, resource in Server::"narthex")
           when { ["start_agent"].contains(resource.name) };"#,
        r#"forbid(principal, action, resource)
           when { resource.server.alias == "narthex" && resource.name == "start_agent" };"#,
    ] {
        let found = fault(rule);
        assert!(found.message.contains("another name of `spawn_session`"), "{rule}: {found}");
        assert!(found.remedy.contains(r#"`Tool::"narthex/spawn_session"`"#), "{rule}: {found}");
    }
}

/// D13: `start_agent` is a name like others where it is not the built-in server's tool.
#[test]
fn d13_further_names_are_free_elsewhere() {
    for rule in [
        r#"forbid(principal, action, resource == Tool::"other/start_agent");"#,
        r#"forbid(principal, action, resource) when { resource.name == "start_agent" };"#,
        r#"@id("start_agent") forbid(principal, action, resource in Server::"narthex");"#,
        r#"forbid(principal == Agent::"start_agent", action, resource == Tool::"narthex/share");"#,
    ] {
        compiled(rule);
    }
}

/// D13: misspelt and mistyped rules, and rules without effect, are refused with a remedy.
#[test]
fn d13_mistakes_are_refused_at_save() {
    for (rule, message, remedy) in [
        ("permit(principal, action, resource);", "`permit` has no effect", "write `forbid`"),
        ("@aproval(\"a.b\") forbid(principal, action, resource);", "`@aproval`", "`@approval`"),
        ("@approval(\"A!\") forbid(principal, action, resource);", "no tool scope", "linear.write"),
        ("@approval forbid(principal, action, resource);", "no tool scope", "leave"),
        ("@id(\"a b\") forbid(principal, action, resource);", "not a short word", "letters"),
        ("@reason(\"a\\nb\") forbid(principal, action, resource);", "not one line of text", "500"),
        (
            "forbid(principal, action, resource) when { principal.nam == \"a\" };",
            "attribute `nam`",
            "name",
        ),
        ("forbid(principal, action, resource) when { context.door == \"x\" };", "door", ""),
        ("forbid(principal, action, resource == Tol::\"x\");", "Tol", "Tool"),
        ("forbid(principal, action == Action::\"cal\", resource);", "cal", ""),
        ("forbid(principal, action, resource) when { resource.name > 3 };", "type", ""),
        (
            "forbid(principal, action, resource) when { context.arguments.path == \"a\" };",
            "path",
            "has",
        ),
        (
            "forbid(principal, action, resource) when { context has arguments };",
            "always exist",
            "context.arguments has path",
        ),
        (
            "forbid(principal, action, resource) when { context.arguments == {} };",
            "all arguments together",
            "name one",
        ),
        (
            "forbid(principal, action, resource) when { context == {} };",
            "as a whole",
            "one of its members",
        ),
        (
            "forbid(principal, action, resource) when { {a: context}.a has arguments };",
            "as a whole",
            "one of its members",
        ),
        (
            "forbid(principal, action, resource) when { context.arguments has a && \
             (context.arguments.a > 1 || context.arguments.a like \"x\") };",
            "two types",
            "two rules",
        ),
    ] {
        let found = fault(rule);
        assert!(found.message.contains(message), "{rule}: {found}");
        assert!(found.remedy.contains(remedy) && !found.remedy.is_empty(), "{rule}: {found}");
        assert_eq!(found.line, Some(1), "{rule}: {found}");
    }
}

/// D13: all faults at once, each with its line and the id of its rule.
#[test]
fn d13_all_faults_of_rules_are_reported_together() {
    let text = r#"// The first is good.
@id("good")
forbid(principal, action, resource in Server::"a");

@id("same")
permit(principal, action, resource);
@id("same")
forbid(principal, action, resource)
when { resource.nme == "a" };
forbid(principal, action, resource) unless { context.arguments };
"#;
    let found: Vec<_> =
        faults(text).into_iter().map(|fault| (fault.line.unwrap(), fault.rule.unwrap())).collect();
    let at = |line: usize, rule: &str| (line, rule.to_owned());
    assert!(found.contains(&at(5, "same")), "{found:?}");
    assert!(found.iter().filter(|one| **one == at(7, "same")).count() >= 2, "{found:?}");
    assert!(found.contains(&at(10, "rule-4")), "{found:?}");
    assert!(!found.iter().any(|(_, rule)| rule == "good"), "{found:?}");
    let unreadable = faults("forbid(principal, action, resource);\nforbid(principal action);\n");
    assert_eq!(unreadable[0].line, Some(2), "{unreadable:?}");
    let template = faults("forbid(principal == ?principal, action, resource);");
    assert!(template[0].message.contains("is a template"), "{template:?}");
}

/// D13: a set has a limit of its text and of its rules.
#[test]
fn d13_a_set_is_limited() {
    let long = format!("// {}", "x".repeat(TEXT_MAX));
    assert!(fault(&long).message.contains("longer than"));
    let rule = "forbid(principal,action,resource);\n";
    assert!(fault(&rule.repeat(RULES_MAX + 1)).message.contains("more than 1000"));
    let faulty = "permit(principal,action,resource);\n".repeat(150);
    assert_eq!(faults(&faulty).len(), FAULTS_MAX + 1);
}
