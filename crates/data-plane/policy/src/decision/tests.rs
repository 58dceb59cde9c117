//! Tests of the decision: the subject, the use and the duration of a grant.

use std::time::Duration;

use bytes::Bytes;
use narthex_model::{
    AgentName, Alias, ErrorKind, Grant, GrantDuration, GrantOf, GrantSubject, NameRule,
    PrincipalId, RunId, SessionId, ToolScope, ToolScopeGrant, UriRule,
};
use narthex_wire::{Limits, Message};

use super::*;
use crate::Origin;

mod basis;
mod turns;

fn alias(name: &str) -> Alias {
    Alias::new(name).unwrap()
}

fn scope(name: &str) -> ToolScope {
    ToolScope::new(name).unwrap()
}

fn user(digit: char) -> PrincipalId {
    PrincipalId::new(&format!("prn_{}", String::from(digit).repeat(16))).unwrap()
}

/// A call of the tool `write` of the server `git`.
fn call(arguments: &str) -> Request {
    let params = format!(r#"{{"name":"write","arguments":{arguments}}}"#);
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    let message = Message::parse(Bytes::from(text), &Limits::default()).unwrap();
    Request::new(alias("git"), message, Item::Tool("write".into()))
}

fn gates(scopes: &[&str]) -> Gates {
    let scopes = scopes.iter().map(|name| scope(name)).collect();
    Gates::new([("write".to_owned(), scopes)].into(), &[].into(), [].into())
}

fn grant(number: u8, subject: GrantSubject, of: ToolScopeGrant, duration: GrantDuration) -> Grant {
    let id = GrantId::new([number; 8]);
    Grant { id, subject, of: GrantOf::ToolScope(of), duration, expires_at: None }
}

fn of(name: &str) -> ToolScopeGrant {
    ToolScopeGrant { scope: scope(name), server: None, tool: None, arguments: None }
}

/// A run of the agent `writer`, which the user 1 drives.
fn authority() -> Authority {
    let actors = Actors {
        user: Some(user('1')),
        agent: Some(AgentName::new("writer").unwrap()),
        session: Some(SessionId::new([1; 6])),
        run: Some(RunId::new([1; 6])),
        ..Actors::default()
    };
    Authority::new(actors, Arc::default(), Arc::default())
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn decide(authority: &Authority, gates: &Gates, request: Request) -> Result<Verdict, Denial> {
    decide_paid(authority, gates, request, &[])
}

fn decide_paid(
    authority: &Authority,
    gates: &Gates,
    request: Request,
    paid: &[GrantId],
) -> Result<Verdict, Denial> {
    let exposed = Exposed::default();
    let rules = ServerRules { exposed: &exposed, gates, id: None };
    let attempt = Attempt { paid, ..Attempt::first(|| at(100)) };
    RunPolicy::AllAttached.authorize(request, rules, authority, attempt)
}

fn is_permit(verdict: Result<Verdict, Denial>) -> bool {
    matches!(verdict, Ok(Verdict::Permit(_)))
}

/// True if the request was refused because a grant is missing, and for no other reason.
fn is_ungranted(verdict: Result<Verdict, Denial>) -> bool {
    matches!(verdict, Err(Denial::Ungranted { .. }))
}

fn unpaid(verdict: Result<Verdict, Denial>) -> Unpaid {
    match verdict.unwrap() {
        Verdict::Unpaid(unpaid) => unpaid,
        Verdict::Permit(_) => panic!("nothing is used up"),
    }
}

/// D13, D5, A-5, A-6: only an attached server's requests get through, and with the bytes that were
/// checked.
#[test]
fn d13_permits_attached_servers_only() {
    let policy = RunPolicy::Attached([alias("git")].into());
    let (open, gates) = (Exposed::default(), Gates::default());
    let rules = ServerRules { exposed: &open, gates: &gates, id: None };
    let attempt = Attempt::first(|| at(0));
    let sent = call("{}");
    let bytes = sent.message.bytes().clone();
    match policy.authorize(sent, rules, &Authority::default(), attempt).unwrap() {
        Verdict::Permit(permitted) => {
            assert!(permitted.basis().is_empty());
            assert_eq!(permitted.into_inner().message.bytes(), &bytes);
        }
        Verdict::Unpaid(_) => panic!("nothing is required"),
    }
    let other = Request { alias: alias("time"), ..call("{}") };
    let denial = policy.authorize(other, rules, &Authority::default(), attempt).unwrap_err();
    assert_eq!((denial.kind(), denial.check()), (ErrorKind::NotFound, "attached"));
}

/// D5, E151, A-5: a name that a server's rules hide is not permitted, with any grants of the run;
/// nor does a grant show it, and the refusal does not reveal that there is a gate.
#[test]
fn d5_permits_nothing_that_a_rule_hides() {
    let deny = |pattern| NameRule::new(None, &[pattern]);
    let hides_tool = Exposed { tools: deny("write"), ..Exposed::default() };
    let rules = ServerRules { exposed: &hides_tool, gates: &gates(&["git.write"]), id: None };
    let authority = authority();
    let subject = GrantSubject::User(user('1'));
    authority.grants.add(grant(1, subject, of("git.write"), GrantDuration::Persistent));
    let attempt = Attempt::first(|| at(0));
    let denial =
        RunPolicy::AllAttached.authorize(call("{}"), rules, &authority, attempt).unwrap_err();
    assert_eq!((denial.kind(), denial.check()), (ErrorKind::NotFound, "exposed"));
    assert_eq!(denial, Denial::Hidden(Item::Tool("write".into())));
    let resources = UriRule::new(None, &["*"]);
    let hides_all = Exposed { tools: deny("*"), resources, prompts: deny("*") };
    for (item, is_exposed) in [
        (Item::Tool("a".into()), false),
        (Item::Prompt("a".into()), false),
        (Item::Resource("a:b".into()), false),
        (Item::Task("a".into()), true),
        (Item::Server, true),
    ] {
        assert_eq!(item.is_exposed(&hides_all), is_exposed, "{item:?}");
    }
}

/// D14, X-M54: a grant at a server applies to the server's id in the catalog: agents' authors
/// cannot move it to another server, and it applies under each alias. A server without a catalog is
/// identified by its alias.
#[test]
fn d14_a_grant_at_a_server_applies_to_its_catalog_id() {
    let (exposed, gates) = (Exposed::default(), gates(&["git.write"]));
    let decide = |server: &str, id| {
        let authority = authority();
        let of = ToolScopeGrant { server: Some(alias(server)), ..of("git.write") };
        let subject = GrantSubject::User(user('1'));
        authority.grants.add(grant(1, subject, of, GrantDuration::Persistent));
        let rules = ServerRules { exposed: &exposed, gates: &gates, id };
        let attempt = Attempt::first(|| at(0));
        RunPolicy::AllAttached.authorize(call("{}"), rules, &authority, attempt)
    };
    // `call` is of the server that the run calls `git`.
    assert!(is_permit(decide("git", None)));
    assert!(is_permit(decide("git-prod", Some("git-prod"))));
    for (granted, id, named) in [("git", Some("git-prod"), "git-prod"), ("git-prod", None, "git")] {
        match decide(granted, id).unwrap_err() {
            Denial::Ungranted { server, .. } => assert_eq!(&*server, named),
            other => panic!("{other}"),
        }
    }
}

/// X-M55, X-M57, D14: all scopes are required, and the refusal names those without a grant.
#[test]
fn x_m55_a_gated_call_requires_a_grant_for_each_scope() {
    let authority = authority();
    let two = gates(&["git.write", "git.push"]);
    let missing = |verdict: Result<Verdict, Denial>| match verdict.unwrap_err() {
        Denial::Ungranted { missing, .. } => missing,
        other => panic!("{other}"),
    };
    assert!(is_permit(decide(&authority, &Gates::default(), call("{}"))));
    let both = missing(decide(&authority, &two, call("{}")));
    assert_eq!(both, [scope("git.push"), scope("git.write")]);
    let subject = GrantSubject::User(user('1'));
    authority.grants.add(grant(1, subject, of("git.write"), GrantDuration::Persistent));
    assert_eq!(missing(decide(&authority, &two, call("{}"))), [scope("git.push")]);
    let subject = GrantSubject::Agent(AgentName::new("writer").unwrap());
    authority.grants.add(grant(2, subject, of("git.push"), GrantDuration::Persistent));
    let Ok(Verdict::Permit(permitted)) = decide(&authority, &two, call("{}")) else { panic!() };
    let mut by: Vec<_> = permitted.basis().ids().collect();
    by.sort();
    assert_eq!(by, [GrantId::new([1; 8]), GrantId::new([2; 8])]);
    assert!(authority.grants.remove(GrantId::new([1; 8])), "revoked");
    assert_eq!(missing(decide(&authority, &two, call("{}"))), [scope("git.write")]);
}

/// D14, X-E81: a grant counts only for the subject, use, place and time that it names.
#[test]
fn d14_a_grant_counts_only_for_its_subject_use_place_and_time() {
    let one = gates(&["git.write"]);
    let arguments = r#"{"path":"a"}"#;
    let digest = call(arguments).arguments_digest();
    let me = GrantSubject::User(user('1'));
    let agent = |name| GrantSubject::Agent(AgentName::new(name).unwrap());
    let at_server = |name| ToolScopeGrant { server: Some(alias(name)), ..of("git.write") };
    let for_tool = |name: &str| ToolScopeGrant { tool: Some(name.to_owned()), ..of("git.write") };
    let with = |digest| ToolScopeGrant { arguments: digest, ..of("git.write") };
    let other_digest = call("{}").arguments_digest();
    let long = GrantDuration::Persistent;
    for (subject, granted, duration, counts) in [
        (me.clone(), of("git.write"), long, true),
        (GrantSubject::User(user('2')), of("git.write"), long, false),
        (agent("writer"), of("git.write"), long, true),
        (agent("reader"), of("git.write"), long, false),
        (me.clone(), of("git.push"), long, false),
        (me.clone(), at_server("git"), long, true),
        (me.clone(), at_server("hub"), long, false),
        (me.clone(), for_tool("write"), long, true),
        (me.clone(), for_tool("read"), long, false),
        (me.clone(), with(digest), long, true),
        (me.clone(), with(other_digest), long, false),
        (me.clone(), of("git.write"), GrantDuration::Run(RunId::new([1; 6])), true),
        (me.clone(), of("git.write"), GrantDuration::Run(RunId::new([2; 6])), false),
        (me.clone(), of("git.write"), GrantDuration::Session(SessionId::new([1; 6])), true),
        (me.clone(), of("git.write"), GrantDuration::Session(SessionId::new([2; 6])), false),
    ] {
        let authority = authority();
        let given = grant(1, subject, granted, duration);
        authority.grants.add(given.clone());
        assert_eq!(is_permit(decide(&authority, &one, call(arguments))), counts, "{given:?}");
    }
    for (end, counts) in [(99, false), (100, false), (101, true)] {
        let authority = authority();
        let given = grant(1, me.clone(), of("git.write"), long);
        authority.grants.add(Grant { expires_at: Some(at(end)), ..given });
        assert_eq!(is_permit(decide(&authority, &one, call(arguments))), counts, "until {end}");
    }
    // A number that readers round: these arguments are never the exact ones.
    let authority = authority();
    authority.grants.add(grant(1, me, with(digest), long));
    let denial = decide(&authority, &one, call("{\"path\":9007199254740993}")).unwrap_err();
    assert!(matches!(denial, Denial::Ungranted { has_digest: false, .. }));
}

/// X-E75: a grant for a single call is for one call, whichever comes first. Lasting grants are used
/// before it, and a call that needs several grants takes all or none.
#[test]
fn x_e75_a_grant_for_a_single_call_is_used_once() {
    let me = GrantSubject::User(user('1'));
    let (one, authority) = (gates(&["git.write"]), authority());
    authority.grants.add(grant(1, me.clone(), of("git.write"), GrantDuration::Once));
    let first = unpaid(decide(&authority, &one, call("{}")));
    assert!(is_ungranted(decide(&authority, &one, call("{}"))), "it is being taken");
    let back = first.put_back();
    let first = unpaid(decide(&authority, &one, back));
    let paid = first.ids().collect::<Vec<_>>();
    let permitted = first.paid();
    assert_eq!(permitted.basis().single().collect::<Vec<_>>(), paid);
    assert!(is_ungranted(decide(&authority, &one, call("{}"))), "it is used up");
    // The later rounds of the call have it, until it is revoked.
    assert!(is_permit(decide_paid(&authority, &one, call("{}"), &paid)));
    authority.grants.remove(paid[0]);
    assert!(is_ungranted(decide_paid(&authority, &one, call("{}"), &paid)), "it is revoked");
    // Two scopes, and another call used up the grant of one meanwhile: the other grant is still
    // there.
    let two = gates(&["git.push", "git.write"]);
    authority.grants.add(grant(2, me.clone(), of("git.push"), GrantDuration::Once));
    assert!(is_ungranted(decide(&authority, &two, call("{}"))));
    authority.grants.add(grant(3, me.clone(), of("git.write"), GrantDuration::Once));
    let both = unpaid(decide(&authority, &two, call("{}")));
    assert_eq!(both.ids().count(), 2);
    let again = both.gone(&[GrantId::new([3; 8])]);
    assert!(is_ungranted(decide(&authority, &two, again)), "the store says that one is over");
    assert!(!is_permit(decide(&authority, &gates(&["git.push"]), call("{}"))));
    authority.grants.add(grant(4, me.clone(), of("git.write"), GrantDuration::Once));
    authority.grants.add(grant(5, me, of("git.write"), GrantDuration::Persistent));
    assert!(is_permit(decide(&authority, &one, call("{}"))), "what lasts comes first");
}

/// D14: grants that were given for the same scope are used up one after the other.
#[test]
fn d14_two_single_calls_are_two_calls() {
    let me = GrantSubject::User(user('1'));
    let (one, authority) = (gates(&["git.write"]), authority());
    for number in [1, 2] {
        authority.grants.add(grant(number, me.clone(), of("git.write"), GrantDuration::Once));
    }
    let first = unpaid(decide(&authority, &one, call("{}")));
    let second = unpaid(decide(&authority, &one, call("{}")));
    assert_ne!(first.ids().next(), second.ids().next());
    assert!(is_ungranted(decide(&authority, &one, call("{}"))));
}

/// S14: a request about a task requires the grants of the call that made the task.
#[test]
fn s14_a_task_requires_the_grants_of_its_call() {
    let me = GrantSubject::User(user('1'));
    let (one, authority) = (gates(&["git.write"]), authority());
    let bound =
        ToolScopeGrant { arguments: call("{\"a\":1}").arguments_digest(), ..of("git.write") };
    authority.grants.add(grant(1, me, bound, GrantDuration::Once));
    let started = unpaid(decide(&authority, &one, call("{\"a\":1}")));
    let arguments = call("{\"a\":1}").arguments_digest();
    let origin = Origin { tool: "write".into(), arguments, paid: started.ids().collect() };
    drop(started.paid());
    let ask = |origin: &Origin| Request {
        item: Item::Task("t1".into()),
        origin: Some(Arc::new(origin.clone())),
        ..call("{}")
    };
    assert!(is_permit(decide(&authority, &one, ask(&origin))));
    assert!(is_ungranted(decide(
        &authority,
        &one,
        ask(&Origin { paid: Vec::new(), ..origin.clone() })
    )));
    assert!(is_permit(decide(&authority, &one, ask(&Origin { tool: "read".into(), ..origin }))));
}

/// X-E75: of many threads at once, exactly one takes a grant for a single call.
#[test]
fn x_e75_one_of_many_threads_takes_a_grant_for_a_single_call() {
    let (one, authority) = (gates(&["git.write"]), authority());
    let subject = GrantSubject::User(user('1'));
    authority.grants.add(grant(1, subject, of("git.write"), GrantDuration::Once));
    let decide = || decide(&authority, &one, call("{}")).is_ok();
    let taken = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(decide)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|is_ok| *is_ok).count()
    });
    assert_eq!(taken, 1);
}

/// Gives one ruling on every question, and records the questions.
#[derive(Debug, Default)]
struct Says {
    ruling: Ruling,
    asked: Arc<std::sync::Mutex<Vec<String>>>,
}

impl crate::Rules for Says {
    fn ask(&self, question: &crate::Question<'_>) -> Ruling {
        let crate::Question { server, item, method, origin, arguments, site, .. } = question;
        let origin = origin.as_str();
        let asked = format!("{server} {item:?} {method} {origin} {arguments:?} {}", site.endpoint);
        self.asked.lock().unwrap().push(asked);
        self.ruling.clone()
    }
}

fn forbids() -> Ruling {
    let (rule, reason) = ("no-writes".into(), "not here".into());
    let forbidden = Some(crate::Forbidding { rule, reason });
    Ruling { forbidden, ..Ruling::default() }
}

fn requires(names: &[&str]) -> Ruling {
    Ruling { scopes: names.iter().map(|name| scope(name)).collect(), ..Ruling::default() }
}

/// A verdict in a word, with the scopes that are missing.
fn word(verdict: &Result<Verdict, Denial>) -> String {
    match verdict {
        Ok(Verdict::Permit(_)) => "permit".to_owned(),
        Ok(Verdict::Unpaid(_)) => "unpaid".to_owned(),
        Err(Denial::Ungranted { missing, .. }) => {
            missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        }
        Err(denial) => denial.check().to_owned(),
    }
}

/// D13, A-5: rules and grants together: a forbidding rule overrides every grant, a rule that asks
/// for approval adds its scopes to the server's requirements, and the grants decide.
#[test]
fn d13_rules_narrow_what_grants_allow() {
    let (none, one) = (Ruling::default(), ["git.write"]);
    let both = ["git.push", "git.write"];
    for (ruling, gated, granted, expected) in [
        (none.clone(), &[][..], &[][..], "permit"),
        (none.clone(), &one[..], &[][..], "git.write"),
        (none, &one[..], &one[..], "permit"),
        (forbids(), &[][..], &[][..], "rules"),
        (forbids(), &one[..], &one[..], "rules"),
        (Ruling { scopes: requires(&one).scopes, ..forbids() }, &[][..], &one[..], "rules"),
        (requires(&one), &[][..], &[][..], "git.write"),
        (requires(&one), &[][..], &one[..], "permit"),
        (requires(&one), &one[..], &one[..], "permit"),
        (requires(&["git.push"]), &one[..], &one[..], "git.push"),
        (requires(&["git.push"]), &one[..], &[][..], "git.push git.write"),
        (requires(&["git.push"]), &one[..], &both[..], "permit"),
    ] {
        let authority = authority();
        authority.rules.set(Some(Box::new(Says { ruling: ruling.clone(), ..Says::default() })));
        for (number, name) in (1..).zip(granted) {
            let subject = GrantSubject::User(user('1'));
            authority.grants.add(grant(number, subject, of(name), GrantDuration::Persistent));
        }
        let verdict = decide(&authority, &gates(gated), call("{}"));
        assert_eq!(word(&verdict), expected, "{ruling:?} {gated:?} {granted:?}");
    }
}

/// D13, A-5: rules are asked after the checks that make a request look absent. They are not asked
/// about lists, messages that only maintain a connection, or the end of a subscription.
#[test]
fn d13_rules_are_evaluated_only_for_requests_that_use_an_item() {
    let asked = Arc::default();
    let authority = authority();
    let says = Says { ruling: forbids(), asked: Arc::clone(&asked) };
    authority.rules.set(Some(Box::new(says)));
    assert!(!authority.rules.is_empty());
    let attempt = || Attempt::first(|| at(0));
    let hidden = Exposed { tools: NameRule::new(None, &["*"]), ..Exposed::default() };
    let rules = ServerRules { exposed: &hidden, gates: &Gates::default(), id: None };
    let hidden = RunPolicy::AllAttached.authorize(call("{}"), rules, &authority, attempt());
    assert_eq!(word(&hidden), "exposed");
    let absent = RunPolicy::default();
    let absent = absent.authorize(call("{}"), ServerRules::OPEN, &authority, attempt());
    assert_eq!(word(&absent), "attached");
    let of = |method: &str, item: Item| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        let message = Message::parse(Bytes::from(text), &Limits::default()).unwrap();
        Request::new(alias("git"), message, item)
    };
    for (method, item, is_asked) in [
        ("tools/list", Item::Server, false),
        ("resources/templates/list", Item::Server, false),
        ("logging/setLevel", Item::Server, false),
        ("subscriptions/listen", Item::Server, false),
        ("notifications/roots/list_changed", Item::Server, false),
        ("resources/unsubscribe", Item::Resource("a:b".into()), false),
        ("resources/subscribe", Item::Resource("a:b".into()), true),
        ("resources/read", Item::Resource("a:b".into()), true),
        ("prompts/get", Item::Prompt("p".into()), true),
        ("completion/complete", Item::Prompt("p".into()), true),
        ("vendor/thing", Item::Server, true),
        ("notifications/vendor", Item::Server, true),
    ] {
        let verdict = decide(&authority, &Gates::default(), of(method, item));
        assert_eq!(word(&verdict) == "rules", is_asked, "{method}");
    }
    asked.lock().unwrap().clear();
    let origin = Origin { tool: "write".into(), ..Origin::default() };
    let task =
        Request { origin: Some(Arc::new(origin)), ..of("tasks/get", Item::Task("t1".into())) };
    assert_eq!(word(&decide(&authority, &Gates::default(), task)), "rules");
    assert_eq!(word(&decide(&authority, &Gates::default(), call(r#"{"a":1}"#))), "rules");
    let told = asked.lock().unwrap().clone();
    assert!(told[0].contains(r#"git Tool("write") tasks/get task Judged"#), "{told:?}");
    assert!(told[1].contains(r#"git Tool("write") tools/call call Json("#), "{told:?}");
    // A change counts for the next request, and without rules there is no question.
    authority.rules.set(None);
    assert!(authority.rules.is_empty());
    assert!(is_permit(decide(&authority, &Gates::default(), call("{}"))));
    assert_eq!(asked.lock().unwrap().len(), 2);
}

proptest::proptest! {
    /// D13: any rules allow only requests that are allowed without them.
    #[test]
    fn d13_rules_never_allow_a_request_that_is_refused_without_rules(
        is_attached in proptest::bool::ANY,
        is_hidden in proptest::bool::ANY,
        is_forbidden in proptest::bool::ANY,
        gated in proptest::collection::vec(0_usize..3, 0..3),
        required in proptest::collection::vec(0_usize..3, 0..3),
        granted in proptest::collection::vec(0_usize..3, 0..3),
    ) {
        let names = ["git.a", "git.b", "git.c"];
        let named = |picked: &[usize]| picked.iter().map(|at| names[*at]).collect::<Vec<_>>();
        let forbidden = forbids().forbidden.filter(|_| is_forbidden);
        let ruling = Ruling { forbidden, ..requires(&named(&required)) };
        let exposed = match is_hidden {
            true => Exposed { tools: NameRule::new(None, &["write"]), ..Exposed::default() },
            false => Exposed::default(),
        };
        let policy = match is_attached {
            true => RunPolicy::AllAttached,
            false => RunPolicy::default(),
        };
        let gates = gates(&named(&gated));
        let authority = authority();
        for (number, name) in (1..).zip(named(&granted)) {
            let subject = GrantSubject::User(user('1'));
            authority.grants.add(grant(number, subject, of(name), GrantDuration::Persistent));
        }
        let decide = || {
            let rules = ServerRules { exposed: &exposed, gates: &gates, id: None };
            policy.authorize(call("{}"), rules, &authority, Attempt::first(|| at(0)))
        };
        let without = decide();
        authority.rules.set(Some(Box::new(Says { ruling, ..Says::default() })));
        let with = decide();
        proptest::prop_assert!(without.is_ok() || with.is_err(), "{:?} {:?}", without, with);
        if let (Err(before), Err(after)) = (&without, &with) {
            // An item that looks absent still does, with any rules.
            if before.check() == "attached" || before.check() == "exposed" {
                proptest::prop_assert_eq!(before, after);
            }
        }
    }
}
