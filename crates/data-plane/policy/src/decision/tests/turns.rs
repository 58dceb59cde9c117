//! The turns of humans: only the grants of the human who has the turn count.

use super::*;

fn of_agent() -> GrantSubject {
    GrantSubject::Agent(AgentName::new("writer").unwrap())
}

fn may(authority: &Authority, scope: &str) -> bool {
    is_permit(decide(authority, &gates(&[scope]), call("{}")))
}

/// X-E81: the grants of the human who has the turn count, and those of the agent always; the newest
/// turn stays, in any order of arrival.
#[test]
fn x_e81_the_grants_of_the_human_with_the_turn_count() {
    let authority = authority();
    let add = |number, subject, name| {
        authority.grants.add(grant(number, subject, of(name), GrantDuration::Persistent));
    };
    add(1, GrantSubject::User(user('1')), "git.write");
    add(2, GrantSubject::User(user('2')), "git.push");
    add(3, of_agent(), "git.read");
    let counts = || ["git.write", "git.push", "git.read"].map(|scope| may(&authority, scope));
    assert_eq!(counts(), [true, false, true]);
    let acting = authority.clone().acting().clone();
    acting.take_turn(2, Some(&user('2')));
    assert_eq!(counts(), [false, true, true]);
    acting.take_turn(1, Some(&user('1')));
    acting.take_turn(2, Some(&user('1')));
    assert_eq!(counts(), [false, true, true], "it is known by now who came later");
    acting.take_turn(3, None);
    assert_eq!(counts(), [false, false, true]);
    acting.take_turn(4, Some(&user('1')));
    assert_eq!(counts(), [true, false, true]);
    let now = authority.actors();
    assert_eq!((now.turn, now.session, now.run), (4, Some(SessionId::new([1; 6])), now.run));
}

/// X-E81: a stream that a grant keeps open ends with the turn of the grant's user; its owner is
/// notified.
#[test]
fn x_e81_a_stream_open_by_a_grant_ends_with_the_turn_of_its_user() {
    let authority = authority();
    let mut changes = authority.acting().changes();
    for (number, subject) in [(1, GrantSubject::User(user('1'))), (2, of_agent())] {
        let scope = if number == 1 { "git.write" } else { "git.read" };
        authority.grants.add(grant(number, subject, of(scope), GrantDuration::Persistent));
    }
    let basis = |scope| match decide(&authority, &gates(&[scope]), call("{}")) {
        Ok(Verdict::Permit(permitted)) => permitted.basis().clone(),
        other => panic!("{other:?}"),
    };
    let (theirs, agents) = (basis("git.write"), basis("git.read"));
    assert!(theirs.counts(&authority.actors(), at(100)) && !changes.has_changed().unwrap());
    authority.acting().take_turn(1, Some(&user('1')));
    assert!(!changes.has_changed().unwrap(), "it stays whose it is");
    authority.acting().take_turn(2, Some(&user('2')));
    assert!(changes.has_changed().unwrap());
    changes.mark_unchanged();
    authority.acting().take_turn(2, Some(&user('1')));
    assert!(!changes.has_changed().unwrap(), "that turn is known");
    assert!(!theirs.counts(&authority.actors(), at(100)));
    assert!(agents.counts(&authority.actors(), at(100)));
}

/// X-E81: the later rounds of a call may use the same grants again while the turn is the same.
#[test]
fn x_e81_later_rounds_are_of_the_same_turn() {
    let (one, authority) = (gates(&["git.write"]), authority());
    let me = GrantSubject::User(user('1'));
    authority.grants.add(grant(1, me, of("git.write"), GrantDuration::Once));
    let first = unpaid(decide(&authority, &one, call("{}")));
    let paid: Vec<_> = first.ids().collect();
    drop(first.paid());
    assert!(is_permit(decide_paid(&authority, &one, call("{}"), &paid)));
    authority.acting().take_turn(1, Some(&user('2')));
    assert!(is_ungranted(decide_paid(&authority, &one, call("{}"), &paid)));
    authority.acting().take_turn(2, Some(&user('1')));
    assert!(is_permit(decide_paid(&authority, &one, call("{}"), &paid)));
}

/// S26: a single call that a session has asked for is a call of that session.
#[test]
fn s26_a_single_use_grant_counts_only_in_the_requesting_session() {
    let (one, authority) = (gates(&["git.write"]), authority());
    let me = GrantSubject::User(user('1'));
    let elsewhere = GrantDuration::OnceIn(SessionId::new([2; 6]));
    authority.grants.add(grant(1, me.clone(), of("git.write"), elsewhere));
    assert!(is_ungranted(decide(&authority, &one, call("{}"))));
    let here = GrantDuration::OnceIn(SessionId::new([1; 6]));
    authority.grants.add(grant(2, me, of("git.write"), here));
    let first = unpaid(decide(&authority, &one, call("{}")));
    assert_eq!(first.ids().collect::<Vec<_>>(), [GrantId::new([2; 8])]);
    drop(first.paid());
    assert!(is_ungranted(decide(&authority, &one, call("{}"))), "it is used up");
}
