//! Tests of the grants that a verdict reports as its basis.

use super::*;
use crate::{Payment, SpentStates, Unused, bound_arguments};

fn granted(number: u8, name: &str, duration: GrantDuration, ends: Option<u64>) -> Grant {
    let subject = GrantSubject::User(user('1'));
    Grant { expires_at: ends.map(at), ..grant(number, subject, of(name), duration) }
}

fn id(number: u8) -> GrantId {
    GrantId::new([number; 8])
}

/// D14: a verdict names the grants behind it, and only a permission releases the request.
#[test]
fn d14_a_verdict_names_its_grants() {
    let authority = authority();
    authority.grants.add(granted(1, "git.write", GrantDuration::Persistent, None));
    let lasting = decide(&authority, &gates(&["git.write"]), call("{}")).unwrap();
    assert_eq!(lasting.basis().ids().collect::<Vec<_>>(), [id(1)]);
    assert!(!lasting.basis().is_empty());
    assert_eq!(lasting.basis().single().count(), 0);
    let permitted = lasting.permitted().expect("it is permitted");
    assert_eq!(permitted.basis().ids().collect::<Vec<_>>(), [id(1)]);

    let authority = super::authority();
    authority.grants.add(granted(2, "git.write", GrantDuration::Once, None));
    let once = decide(&authority, &gates(&["git.write"]), call("{}")).unwrap();
    assert_eq!(once.basis().ids().collect::<Vec<_>>(), [id(2)]);
    assert_eq!(once.basis().single().collect::<Vec<_>>(), [id(2)]);
    assert!(once.permitted().is_none(), "it is not paid for");

    let open = decide(&super::authority(), &gates(&[]), call("{}")).unwrap();
    assert!(open.basis().is_empty());
}

/// D14: of several grants the first end counts, also of joined grants.
#[test]
fn d14_a_basis_ends_with_its_first_grant() {
    let basis = |grants: &[(u8, &str, Option<u64>)]| {
        let authority = authority();
        let scopes: Vec<_> = grants.iter().map(|(_, name, _)| *name).collect();
        for (number, name, ends) in grants {
            authority.grants.add(granted(*number, name, GrantDuration::Persistent, *ends));
        }
        let verdict = decide(&authority, &gates(&scopes), call("{}")).unwrap();
        verdict.permitted().unwrap().basis().clone()
    };
    assert_eq!(basis(&[(1, "a.a", None)]).ends_at(), None);
    let mut first = basis(&[(1, "a.a", Some(300)), (2, "a.b", None)]);
    assert_eq!(first.ends_at(), Some(at(300)));
    first.join(&basis(&[(3, "a.c", Some(200))]));
    assert_eq!(first.ends_at(), Some(at(200)));
    let mut ids: Vec<_> = first.ids().collect();
    ids.sort();
    assert_eq!(ids, [id(1), id(2), id(3)]);
}

/// D25: the tries of a call share the grants for a single call that one of them used up; when no
/// server has seen the call, the next call has them.
#[test]
fn d25_the_next_call_gets_grants_that_no_server_has_seen_used() {
    let (authority, one) = (authority(), gates(&["git.write"]));
    authority.grants.add(granted(2, "git.write", GrantDuration::Once, None));
    let (unused, spent) = (Unused::default(), SpentStates::new(Duration::ZERO));
    let lend = |payment: &mut Payment| {
        unused.lend(payment, |paid| decide_paid(&authority, &one, call("{}"), paid))
    };
    let mut first = Payment::default();
    let verdict = lend(&mut first).unwrap();
    first.uses(verdict.basis());
    first.uses(verdict.basis());
    assert_eq!(first.grants, [id(2)], "used twice, and counted once");
    drop(unpaid(Ok(verdict)).paid());
    assert!(is_permit(decide_paid(&authority, &one, call("{}"), &first.grants)), "a second try");
    first.give_back(&unused, &spent);

    let mut second = Payment::default();
    assert!(is_permit(lend(&mut second)));
    assert_eq!(second.grants, [id(2)]);
    assert!(is_ungranted(lend(&mut Payment::default())), "one call has it");
    second.give_back(&unused, &spent);
    assert!(is_permit(lend(&mut Payment::default())), "also after a further call");
}

/// D25: of several grants that no server has seen used, a call takes only those that it needs.
#[test]
fn d25_a_call_takes_only_the_unused_grants_that_are_needed() {
    let authority = authority();
    authority.grants.add(granted(2, "git.write", GrantDuration::Once, None));
    authority.grants.add(granted(3, "git.push", GrantDuration::Once, None));
    let (unused, spent) = (Unused::default(), SpentStates::new(Duration::ZERO));
    let (write, push) = (gates(&["git.write"]), gates(&["git.push"]));
    for gates in [&write, &push] {
        let first = unpaid(decide(&authority, gates, call("{}")));
        let mut payment = Payment::default();
        payment.uses(first.paid().basis());
        payment.give_back(&unused, &spent);
    }
    for (gates, id) in [(&write, id(2)), (&push, id(3))] {
        let mut payment = Payment::default();
        let decide = |paid: &[GrantId]| decide_paid(&authority, gates, call("{}"), paid);
        assert!(is_permit(unused.lend(&mut payment, decide)), "{id}");
        assert_eq!(payment.grants, [id]);
    }
}

/// All who have no rules share one set, which is empty.
#[test]
fn workspaces_without_rules_share_one_empty_set() {
    assert!(Arc::ptr_eq(&WorkspaceRules::none(), &WorkspaceRules::none()));
    assert!(WorkspaceRules::none().is_empty());
}

/// S26: a state is bound to the meaning of the arguments, and to their bytes where readers round.
#[test]
fn s26_a_state_is_bound_to_arguments() {
    let bound = |arguments| bound_arguments(&call(arguments));
    assert_eq!(bound(r#"{"a":1}"#), bound(r#"{ "a": 1.0 }"#));
    assert_ne!(bound(r#"{"a":1}"#), bound(r#"{"a":2}"#));
    assert_ne!(bound(r#"{"a":9007199254740993}"#), bound(r#"{"a":9007199254740995}"#));
    let task = Request { origin: Some(Arc::default()), ..call(r#"{"a":1}"#) };
    assert_eq!(
        bound_arguments(&task),
        [0; 32],
        "a task has those of its call, which had no digest"
    );
}

/// D14: reading and following a gated resource require a grant; ending that requires none.
#[test]
fn d14_giving_up_a_subscription_requires_no_grant() {
    let scopes: ToolScopes = [scope("git.read")].into();
    let gates = Gates::new([].into(), &[("a:*".to_owned(), scopes)].into(), [].into());
    let ask = |method: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
        let message = Message::parse(Bytes::from(text), &Limits::default()).unwrap();
        let request = Request::new(alias("git"), message, Item::Resource("a:b".into()));
        is_permit(decide(&authority(), &gates, request))
    };
    assert!(!ask("resources/subscribe") && !ask("resources/read"));
    assert!(ask("resources/unsubscribe"));
}

/// X-E75: the call that used a grant up has it, until the store reports that it is over.
#[test]
fn x_e75_a_used_up_grant_no_longer_counts_for_its_call() {
    let (authority, one) = (authority(), gates(&["git.write"]));
    authority.grants.add(granted(1, "git.write", GrantDuration::Once, None));
    let claim = || decide_paid(&authority, &one, call("{}"), &[id(1)]);
    let first = unpaid(decide(&authority, &one, call("{}")));
    assert!(is_permit(claim()), "it is taken");
    let request = first.gone(&[id(1)]);
    assert!(is_ungranted(claim()), "it is over");
    assert!(is_ungranted(decide(&authority, &one, request)));
}

/// D14: the table knows each grant once, by its id; taking one out leaves the others.
#[test]
fn d14_the_table_knows_each_grant_once() {
    let (authority, one) = (authority(), gates(&["git.write"]));
    let grants = &authority.grants;
    assert!(grants.is_empty());
    for number in [1, 2] {
        grants.add(granted(number, "git.write", GrantDuration::Once, None));
        grants.add(granted(number, "git.write", GrantDuration::Once, None));
    }
    let mut ids = grants.ids();
    ids.sort();
    assert_eq!((ids, grants.len(), grants.is_empty()), (vec![id(1), id(2)], 2, false));
    assert_eq!(grants.get(id(1)).unwrap().grant().id, id(1));
    let mut removals = grants.removals();
    assert!(!removals.has_changed().unwrap());
    assert!(grants.remove(id(1)) && removals.has_changed().unwrap());
    removals.mark_unchanged();
    assert!(!grants.remove(id(1)), "it is gone");
    assert!(!removals.has_changed().unwrap());
    assert!(grants.get(id(1)).is_none());
    let other = unpaid(decide(&authority, &one, call("{}")));
    assert_eq!(other.ids().collect::<Vec<_>>(), [id(2)], "the other one counts still");
}

/// D25: a grant that was taken elsewhere is for the later rounds of its call alone, whether it was
/// known here before or not.
#[test]
fn d25_a_grant_taken_elsewhere_counts_only_for_its_call() {
    for is_known in [false, true] {
        let (authority, one) = (authority(), gates(&["git.write"]));
        let once = granted(1, "git.write", GrantDuration::Once, None);
        if is_known {
            authority.grants.add(once.clone());
        }
        authority.grants.add_taken(once);
        assert!(is_ungranted(decide(&authority, &one, call("{}"))), "another call has it");
        assert!(is_permit(decide_paid(&authority, &one, call("{}"), &[id(1)])));
    }
}
