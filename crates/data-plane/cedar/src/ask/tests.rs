//! Tests of the rulings on requests.

use std::time::{Duration, SystemTime};

use narthex_model::{AgentName, AgentType, Alias, PrincipalId, RunId, SessionId};
use narthex_policy::{Actors, CallOrigin, Site};
use proptest::prelude::*;

use super::*;

fn rules(text: &str) -> RuleSet {
    RuleSet::compile(text).unwrap_or_else(|faults| panic!("{faults}"))
}

fn actors() -> Actors {
    Actors {
        user: PrincipalId::new("prn_1111111111111111").ok(),
        turn: 0,
        agent: AgentName::new("writer").ok(),
        session: Some(SessionId::new([1; 6])),
        run: Some(RunId::new([2; 6])),
        agent_type: Some(AgentType::Orchestrator),
        is_child: true,
    }
}

/// Wednesday, 10 January 2024, 09:05 in UTC.
fn at() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_704_877_500)
}

/// The ruling on a call of the tool `write` of the server `linear`, which the run calls `lin`.
fn said(rules: &RuleSet, arguments: &str) -> Ruling {
    let annotations = br#"{"readOnlyHint":true,"destructiveHint":"no"}"#;
    let site = Site {
        workspace: "team",
        server_id: Some("linear"),
        annotations: Some(annotations),
        endpoint: "aggregated",
        era: "modern",
    };
    rules.ask(&Question {
        actors: &actors(),
        server: &Alias::new("lin").unwrap(),
        item: &Item::Tool("write".into()),
        method: "tools/call",
        origin: CallOrigin::Call,
        arguments: Arguments::Json(arguments.as_bytes()),
        site,
        at: at(),
    })
}

fn matches(condition: &str, arguments: &str) -> bool {
    let set = rules(&format!("forbid(principal, action, resource) when {{ {condition} }};"));
    let said = said(&set, arguments);
    assert!(said.failed.is_empty(), "{condition}: {said:?}");
    said.forbidden.is_some()
}

/// D13, A-13: each value that a rule may read is a fact about the run and its call.
#[test]
fn d13_rules_can_read_each_fact_about_run_and_call() {
    for condition in [
        r#"principal == Agent::"writer" && principal.name == "writer""#,
        r#"principal.agent_type == "orchestrator" && principal.is_child"#,
        r#"principal.user == "prn_1111111111111111" && principal.workspace == "team""#,
        r#"principal.run != "" && principal.session != "" && principal.run != principal.session"#,
        r#"resource == Tool::"linear/write" && resource in Server::"linear""#,
        r#"resource.name == "write" && resource.server == Server::"linear""#,
        r#"resource.server.alias == "lin" && resource.server.id == "linear""#,
        r#"context.method == "tools/call" && context.endpoint == "aggregated""#,
        r#"context.era == "modern" && context.time.weekday == 3"#,
        r#"context.origin == "call""#,
        r#"context.time.hour == 9 && context.time.minute == 5"#,
        r#"context.time.seconds == 1704877500"#,
    ] {
        assert!(matches(condition, "{}"), "{condition}");
        assert!(!matches(&format!("!({condition})"), "{}"), "{condition}");
    }
}

/// S25: a missing annotation of a tool, or one in another form, gets the protocol's default: the
/// worse one.
#[test]
fn s25_missing_annotations_get_the_worse_default() {
    assert!(matches("context.annotations.readOnlyHint", "{}"), "it is said");
    assert!(matches("context.annotations.destructiveHint", "{}"), "it is no boolean");
    assert!(matches("context.annotations.openWorldHint", "{}"));
    assert!(!matches("context.annotations.idempotentHint", "{}"));
}

/// D13: arguments are compared by their own types; an absent argument does not match.
#[test]
fn d13_arguments_are_values() {
    let path = r#"context.arguments has path && context.arguments.path like "/etc/*""#;
    for (arguments, is_match) in
        [(r#"{"path":"/etc/passwd"}"#, true), (r#"{"path":"/tmp/a"}"#, false), ("{}", false)]
    {
        assert_eq!(matches(path, arguments), is_match, "{arguments}");
    }
    assert!(!matches(path, r#"{"path":null}"#), "null is nothing");
    let count = "context.arguments has count && context.arguments.count >= 10";
    assert!(matches(count, r#"{"count":10.0}"#) && !matches(count, r#"{"count":9}"#));
    let to = r#"context.arguments has to && context.arguments.to.contains("all")"#;
    assert!(matches(to, r#"{"to":["me","all"]}"#) && !matches(to, r#"{"to":[]}"#));
    let inside = "context.arguments has options.force && context.arguments.options.force";
    assert!(matches(inside, r#"{"options":{"force":true}}"#));
    assert!(!matches(inside, r#"{"options":{}}"#));
    assert!(matches(r#"context.arguments has a && context.arguments.a == "0.5""#, r#"{"a":0.5}"#));
}

/// S12, S14, D13: arguments that cannot be compared or shown count as matching, and only where a
/// rule uses them.
#[test]
fn s14_arguments_that_cannot_be_compared_count_as_matching() {
    let text = r#"@id("deep") forbid(principal, action, resource in Server::"linear")
        when { context.arguments has n && context.arguments.n > 10 };
        @id("other") forbid(principal, action, resource in Server::"other")
        when { context.arguments has n && context.arguments.n > 10 };
        @id("plain") forbid(principal, action, resource) when { resource.name == "read" };"#;
    let set = rules(text);
    let deep = format!("{{\"n\":{}1{}}}", "[".repeat(30), "]".repeat(30));
    let large = format!("{{\"n\":1,\"x\":\"{}\"}}", "x".repeat(70_000));
    for arguments in
        [r#"{"n":"11"}"#, r#"{"n":0.5}"#, r#"{"n":[11]}"#, r#"{"n":1,"n":2}"#, "[]", &deep, &large]
    {
        let said = said(&set, arguments);
        assert_eq!(said.forbidden.as_ref().map(|by| &*by.rule), Some("deep"), "{arguments}");
        assert_eq!((said.matched.len(), said.failed.len()), (1, 1), "{said:?}");
    }
    assert_eq!(said(&set, r#"{"n":3}"#), Ruling::default());
    let of_task = |tool: &str| {
        set.ask(&Question {
            actors: &actors(),
            server: &Alias::new("linear").unwrap(),
            item: &Item::Tool(tool.into()),
            method: "tasks/get",
            origin: CallOrigin::Task,
            arguments: Arguments::Judged,
            site: Site::default(),
            at: at(),
        })
    };
    assert_eq!(of_task("write"), Ruling::default(), "it was decided on when the call was made");
    assert!(of_task("read").forbidden.is_some());
}

/// S14, D13: an argument of another type than a rule requires counts as matching also where Cedar
/// takes it for different: servers that read `"true"` as `true` are not called with forbidden
/// arguments.
#[test]
fn s14_an_argument_of_another_type_counts_as_matching() {
    const FORCE: &str = "context.arguments has force && context.arguments.force == true";
    const KEPT: &str = "context.arguments has keep && context.arguments.keep != true";
    const TO: &str = r#"context.arguments has to && context.arguments.to.contains("all")"#;
    const N: &str = "context.arguments has n && context.arguments.n == 3";
    const IN: &str =
        "context.arguments has options.force && context.arguments.options.force == true";
    const ANY: &str =
        r#"context.arguments has to && context.arguments.to.containsAny(["all", "list"])"#;
    for (condition, is_so, mistyped, other) in [
        (
            FORCE,
            r#"{"force":true}"#,
            &[
                r#"{"force":"true"}"#,
                r#"{"force":1}"#,
                r#"{"force":[]}"#,
                // Keys that a lenient server reads as the key in the rule.
                r#"{"Force":true}"#,
                r#"{"force":false,"FORCE":true}"#,
                r#"{"force\u0000":true}"#,
                r#"{" force":true}"#,
                r#"{"\u017fforce":null,"forCe":true}"#,
            ][..],
            &[r#"{"force":false}"#, r#"{"force":null}"#, "{}"][..],
        ),
        (KEPT, r#"{"keep":false}"#, &[r#"{"keep":"no"}"#, r#"{"keep":0}"#], &[r#"{"keep":true}"#]),
        (
            TO,
            r#"{"to":["all"]}"#,
            &[r#"{"to":[["all"]]}"#, r#"{"to":[1]}"#, r#"{"to":"all"}"#],
            &[r#"{"to":["me",null]}"#, r#"{"to":[]}"#],
        ),
        (N, r#"{"n":3.0}"#, &[r#"{"n":"3"}"#, r#"{"n":3.5}"#, r#"{"n":{}}"#], &[r#"{"n":4}"#]),
        (
            IN,
            r#"{"options":{"force":true}}"#,
            &[
                r#"{"options":{"force":"yes"}}"#,
                r#"{"options":"force"}"#,
                r#"{"options":{"Force":true}}"#,
                r#"{"Options":{"force":true}}"#,
            ],
            &[r#"{"options":{"force":false}}"#, r#"{"options":{}}"#],
        ),
        (ANY, r#"{"to":["list"]}"#, &[r#"{"to":[5]}"#, r#"{"to":{"a":1}}"#], &[r#"{"to":["me"]}"#]),
    ] {
        let set = rules(&format!("forbid(principal, action, resource) when {{ {condition} }};"));
        let asked = |arguments: &str| {
            let said = said(&set, arguments);
            assert_eq!(said.forbidden.is_some(), said.matched.len() == 1, "{said:?}");
            (said.matched.len(), said.failed.len())
        };
        assert_eq!(asked(is_so), (1, 0), "{condition} {is_so}");
        for arguments in mistyped {
            assert_eq!(asked(arguments), (1, 1), "{condition} {arguments}");
        }
        for arguments in other {
            assert_eq!(asked(arguments), (0, 0), "{condition} {arguments}");
        }
    }
}

/// S14, D13: the other conditions of a rule are asked as ever, in any order: a rule for one tool,
/// or for another argument, does not apply to others.
#[test]
fn s14_other_conditions_of_a_rule_still_count_beside_an_unusable_argument() {
    let set = rules(
        r#"@id("tool") forbid(principal, action, resource)
        when { context.arguments has force && context.arguments.force == true
               && resource.name == "delete" };
        @id("repo") forbid(principal, action, resource)
        when { context.arguments has repo && context.arguments.repo == "prod" }
        when { context.arguments has force && context.arguments.force == true };
        @id("dry") forbid(principal, action, resource == Tool::"linear/write")
        when { context.arguments has wipe && context.arguments.wipe }
        unless { context.arguments has dry && context.arguments.dry == true };
        @id("other") forbid(principal, action, resource == Tool::"linear/read")
        when { context.arguments has force && context.arguments.force == true };"#,
    );
    let failed = |arguments: &str| {
        let said = said(&set, arguments);
        assert_eq!(said.matched, said.failed, "{said:?}");
        said.failed.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(failed(r#"{"force":"true"}"#), [""; 0]);
    assert_eq!(failed(r#"{"force":"true","repo":"test"}"#), [""; 0]);
    assert_eq!(failed(r#"{"force":"true","repo":"prod"}"#), ["repo"]);
    assert_eq!(failed(r#"{"force":true,"repo":5}"#), ["repo"]);
    assert_eq!(failed(r#"{"wipe":true,"dry":"true"}"#), ["dry"], "whether it is dry is not known");
    assert_eq!(failed(r#"{"wipe":false,"dry":"true"}"#), [""; 0]);
}

/// D13: several rules at once: the first that forbids is reported, and all scopes are required.
#[test]
fn d13_rules_add_up() {
    let set = rules(
        r#"@approval("linear.write, linear.read") forbid(principal, action, resource is Tool);
           @id("no") @reason("not today")
           forbid(principal, action, resource == Tool::"linear/write");
           @id("never") forbid(principal, action, resource in Server::"linear");
           @approval("team.audit") forbid(principal == Agent::"writer", action, resource);
           @approval("team.other") forbid(principal == Agent::"reader", action, resource);"#,
    );
    let said = said(&set, "{}");
    let by = said.forbidden.unwrap();
    assert_eq!((&*by.rule, &*by.reason), ("no", "not today"));
    let matched: Vec<_> = said.matched.iter().map(|id| &**id).collect();
    assert_eq!(matched, ["rule-1", "no", "never", "rule-4"]);
    let scopes: Vec<_> = said.scopes.iter().map(|scope| scope.as_str()).collect();
    assert_eq!(scopes, ["linear.read", "linear.write", "team.audit"]);
}

/// S14, D5: a rule about a resource is about it in every spelling, and reported once.
#[test]
fn s14_no_spelling_of_a_uri_gets_around_a_rule() {
    let set = rules(
        r#"@id("one") forbid(principal, action, resource == Resource::"files/file:///secret/a b");
           @id("like") @approval("s.read") forbid(principal, action, resource is Resource)
           when { resource.name like "demo://resource/*" };"#,
    );
    let of = |uri: &str| {
        let said = set.ask(&Question {
            actors: &actors(),
            server: &Alias::new("files").unwrap(),
            item: &Item::Resource(uri.into()),
            method: "resources/read",
            origin: CallOrigin::Call,
            arguments: Arguments::Json(b"{}"),
            site: Site::default(),
            at: at(),
        });
        said.matched.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let secret = ["file:///secret/a b", "FILE:/secret/a%20b", "file:///x/..\\secret/a b"];
    for uri in secret {
        assert_eq!(of(uri), ["one"], "{uri}");
    }
    for uri in ["demo://resource/a", "de\tmo://resource/%61", " DEMO://resource/a"] {
        assert_eq!(of(uri), ["like"], "{uri:?}");
    }
    assert_eq!(of("demo://resources/a"), Vec::<String>::new());
}

proptest! {
    /// Whatever the arguments and names are, rules answer, and alike each time.
    #[test]
    fn any_question_gets_the_same_answer_each_time(
        name in ".{0,40}", argument in ".{0,40}", number in any::<f64>(),
    ) {
        let set = rules(r#"forbid(principal, action, resource) when {
            context.arguments has a && context.arguments.a like "*x*" };
            forbid(principal, action, resource) when {
            context.arguments has n && context.arguments.n > 3 };"#);
        let arguments = serde_json::json!({ "a": argument, "n": number }).to_string();
        let question = Question {
            actors: &actors(),
            server: &Alias::new("linear").unwrap(),
            item: &Item::Resource(name.as_str().into()),
            method: "resources/read",
            origin: CallOrigin::Call,
            arguments: Arguments::Json(arguments.as_bytes()),
            site: Site::default(),
            at: at(),
        };
        let said = set.ask(&question);
        prop_assert_eq!(&said, &set.ask(&question));
        prop_assert_eq!(said.matched.contains(&"rule-1".into()), argument.contains('x'));
    }
}

/// The same rules, not sorted by head: each is evaluated for each call.
fn unsorted(set: RuleSet) -> RuleSet {
    let RuleSet { rules, plain, asking, names, kinds } = set;
    let [plain, asking] = [plain, asking].map(|group| {
        let mut one = Part::default();
        for part in group.by_head.values() {
            part.rules().for_each(|rule| one.add(rule.clone()));
        }
        // A head that every question has. Nothing is joined.
        let any = Head { principal: None, resource: HeadResource::Any };
        Group { by_head: HashMap::from([(any, one)]) }
    });
    RuleSet { rules, plain, asking, names, kinds }
}

proptest! {
    /// D13: the heads decide which rules are asked, and asking them together never changes their
    /// rulings.
    #[test]
    fn d13_rules_skipped_by_their_head_would_not_match(
        heads in proptest::collection::vec((0..6_usize, 0..12_usize, 0..6_usize), 1..60),
        agent in 0..3_usize,
        server in 0..3_usize,
        item in 0..5_usize,
        arguments in 0..4_usize,
    ) {
        let principals = [
            "principal", "principal is Agent", r#"principal == Agent::"a""#,
            r#"principal in Agent::"b""#, r#"principal is Agent in Agent::"a""#,
            r#"principal == Agent::"""#,
        ];
        let resources = [
            "resource", "resource is Tool", "resource is Prompt", "resource is Resource",
            "resource is Method", r#"resource in Server::"one""#, r#"resource in Server::"two""#,
            r#"resource == Tool::"one/x""#, r#"resource in Tool::"one/x""#,
            r#"resource is Prompt in Server::"one""#, r#"resource == Prompt::"two/x""#,
            r#"resource is Tool in Tool::"two/x""#,
        ];
        let conditions = [
            "", r#"when { resource.name == "x" }"#, r#"unless { principal.name == "a" }"#,
            "when { context.arguments has n && context.arguments.n > 3 }",
            r#"when { resource.name == "y" } unless { principal.name == "b" }"#,
            r#"when { context.arguments has m && context.arguments.m == "1" }"#,
        ];
        let rule = |(principal, resource, condition): &(usize, usize, usize)| {
            let (principal, resource) = (principals[*principal], resources[*resource]);
            format!("forbid({principal}, action, {resource}) {};\n", conditions[*condition])
        };
        let text: String = heads.iter().map(rule).collect();
        let actors = Actors {
            agent: [None, AgentName::new("a").ok(), AgentName::new("b").ok()][agent].clone(),
            ..Actors::default()
        };
        let items = [
            Item::Tool("x".into()), Item::Tool("y".into()), Item::Prompt("x".into()),
            Item::Resource("x".into()), Item::Server,
        ];
        let question = Question {
            actors: &actors,
            server: &Alias::new(["one", "two", "three"][server]).unwrap(),
            item: &items[item],
            method: "vendor/x",
            origin: CallOrigin::Call,
            arguments: Arguments::Json(
                [&br#"{"n":"no number"}"#[..], br#"{"n":3}"#, br#"{"n":4,"m":"1"}"#, b"[]"]
                    [arguments],
            ),
            site: Site::default(),
            at: at(),
        };
        let sorted = rules(&text).ask(&question);
        prop_assert_eq!(sorted, unsorted(rules(&text)).ask(&question), "{}", text);
    }
}
