//! Grants and requests for them: stored, used up once, and ended with their subject.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_model::{
    AgentName, CatalogKind, Grant, GrantDuration, GrantId, GrantOf, GrantRequestId, GrantSubject,
    PrincipalId, RunEnd, RunId, SessionId, ToolScope, ToolScopeGrant, WorkspaceId,
};
use narthex_store::{
    GrantDecision, GrantPlace, GrantRequestRow, GrantRequestStatus, GrantRow, GrantSearch, NewRun,
    OPEN_MAX, RequestPlace, RequestSearch, RequestState, SessionRow, Store, Workspace,
};
use tokio::task::JoinSet;

use crate::support::{Place, id};

fn run(number: u8) -> RunId {
    RunId::new([number; 6])
}

fn session(number: u8) -> SessionId {
    SessionId::new([number; 6])
}

fn grant_id(number: u8) -> GrantId {
    GrantId::new([number; 8])
}

fn user() -> GrantSubject {
    GrantSubject::User(PrincipalId::new("prn_00000000000000aa").unwrap())
}

fn scope() -> GrantOf {
    let scope = ToolScope::new("git.write").unwrap();
    GrantOf::ToolScope(ToolScopeGrant { scope, server: None, tool: None, arguments: None })
}

fn row(workspace: &WorkspaceId, number: u8, duration: GrantDuration) -> GrantRow {
    let (id, subject, of) = (grant_id(number), user(), scope());
    GrantRow {
        grant: Grant { id, subject, of, duration, expires_at: None },
        workspace: workspace.clone(),
        reason: "it is needed".to_owned(),
        granted_at: UNIX_EPOCH + Duration::from_millis(7),
        granted_by: "ada".to_owned(),
        is_advisory: true,
        consumed: None,
        revoked: None,
    }
}

/// A workspace with an agent and a run in a session of it.
async fn tenant(store: &Store, name: &str, number: u8) -> WorkspaceId {
    let here = id(name);
    let workspace = Workspace::new(here.clone(), "");
    store.workspaces().create(&workspace).await.unwrap();
    store.catalog(CatalogKind::Agent).create(&here, "reader", "{}", "admin").await.unwrap();
    let new = SessionRow {
        workspace: here.clone(),
        id: session(number),
        agent: "reader".to_owned(),
        parent: None,
        depth: 0,
        sealed: String::new(),
        created_at: SystemTime::now(),
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    };
    let driver = PrincipalId::new("prn_00000000000000aa").unwrap();
    let new_run = NewRun {
        id: run(number),
        workspace: &here,
        session: session(number),
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: "hash",
        sealed: "sealed",
        created_by: "admin",
        expires_at: SystemTime::now() + Duration::from_secs(1000),
        has_sockets: false,
        driver: Some(&driver),
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    };
    assert!(store.runs().create(new_run, Some(&new)).await.unwrap().is_some());
    let kept = store.runs().find(run(number)).await.unwrap().unwrap();
    assert_eq!(kept.driver, Some(driver), "X-E81: who drives a run is kept with it");
    here
}

/// X-E76, X-E78: grants outlive the store; a grant is revoked once, and the call that used it up
/// stays recorded.
#[tokio::test]
async fn x_e78_a_stored_grant_never_changes() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, there) = (tenant(&store, "team", 1).await, tenant(&store, "rival", 2).await);
        let mut once = row(&here, 1, GrantDuration::Once);
        once.grant.expires_at = Some(SystemTime::now() + Duration::from_secs(1000));
        // The store keeps milliseconds.
        let ms = once.grant.expires_at.unwrap().duration_since(UNIX_EPOCH).unwrap().as_millis();
        once.grant.expires_at = Some(UNIX_EPOCH + Duration::from_millis(ms.try_into().unwrap()));
        assert!(store.grants().create(&once).await.unwrap());
        store.close().await;
        let store = place.open().await;
        let grants = store.grants();
        assert_eq!(grants.find(&here, grant_id(1)).await.unwrap(), Some(once.clone()));
        assert_eq!(grants.find(&there, grant_id(1)).await.unwrap(), None);

        let gone = grants.consume(&there, &[grant_id(1)], run(2)).await.unwrap();
        assert_eq!(gone, [grant_id(1)], "it is not theirs");
        assert_eq!(grants.consume(&here, &[grant_id(1)], run(1)).await.unwrap(), []);
        assert!(!grants.revoke(&there, grant_id(1), "eve").await.unwrap());
        assert!(grants.revoke(&here, grant_id(1), "bob").await.unwrap());
        assert!(!grants.revoke(&here, grant_id(1), "eve").await.unwrap());
        let found = grants.find(&here, grant_id(1)).await.unwrap().unwrap();
        assert_eq!(found.consumed.as_ref().unwrap().1, run(1).to_text());
        assert_eq!(found.revoked.as_ref().unwrap().1, "bob");
        assert_eq!(GrantRow { consumed: None, revoked: None, ..found }, once);
        assert_eq!(grants.page(&here, "", 9, false).await.unwrap(), []);
        assert_eq!(grants.page(&here, "", 9, true).await.unwrap().len(), 1);
        assert_eq!(grants.live().await.unwrap().rows, []);
    }
}

/// X-E75: of many that use a grant up at once one has it; several grants are used up together, or
/// none is.
#[tokio::test]
async fn x_e75_a_grant_is_used_up_once() {
    for place in Place::both() {
        let store = place.open().await;
        let here = tenant(&store, "team", 1).await;
        for number in [1, 2] {
            assert!(store.grants().create(&row(&here, number, GrantDuration::Once)).await.unwrap());
        }
        let (other, mut all) = (place.open().await, JoinSet::new());
        for number in 0..20 {
            let store = if number % 2 == 0 { store.clone() } else { other.clone() };
            let here = here.clone();
            all.spawn(async move {
                store.grants().consume(&here, &[grant_id(1)], run(1)).await.unwrap()
            });
        }
        let done = all.join_all().await;
        assert_eq!(done.iter().filter(|gone| gone.is_empty()).count(), 1);
        let both = [grant_id(2), grant_id(1)];
        assert_eq!(store.grants().consume(&here, &both, run(1)).await.unwrap(), [grant_id(1)]);
        let second = store.grants().find(&here, grant_id(2)).await.unwrap().unwrap();
        assert_eq!(second.consumed, None, "the other one is not lost");
        let live = store.grants().live().await.unwrap();
        assert_eq!(live.rows.len(), 2, "later rounds of the call need the one that was used up");
        other.close().await;
    }
}

/// X-E77, A-14: a grant for a run or a session ends with it; a grant for an agent ends with it, and
/// another agent of its name does not inherit it. Single-use and persistent grants stay.
#[tokio::test]
async fn x_e77_grants_end_with_their_run_session_or_agent() {
    for place in Place::both() {
        let store = place.open().await;
        let (here, there) = (tenant(&store, "team", 1).await, tenant(&store, "rival", 2).await);
        let grants = store.grants();
        let durations = [
            GrantDuration::Once,
            GrantDuration::Persistent,
            GrantDuration::Run(run(1)),
            GrantDuration::Session(session(1)),
        ];
        for (number, duration) in (1..).zip(durations) {
            assert!(grants.create(&row(&here, number, duration)).await.unwrap());
        }
        assert!(grants.create(&row(&there, 9, GrantDuration::Run(run(2)))).await.unwrap());
        let foreign = row(&there, 8, GrantDuration::Run(run(1)));
        assert!(!grants.create(&foreign).await.unwrap(), "a run of another workspace");
        let seen = grants.live().await.unwrap().last;

        assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
        let changed = grants.since(seen).await.unwrap();
        let ids: Vec<_> = changed.rows.iter().map(|row| row.grant.id).collect();
        assert_eq!(ids, [grant_id(3)]);
        assert!(changed.rows[0].revoked.is_some() && changed.last > seen);
        assert!(store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
        let left: Vec<_> =
            grants.live().await.unwrap().rows.iter().map(|row| row.grant.id).collect();
        assert_eq!(left, [grant_id(1), grant_id(2), grant_id(9)]);
        assert!(!grants.create(&row(&here, 7, GrantDuration::Session(session(1)))).await.unwrap());

        let subject = GrantSubject::Agent(AgentName::new("reader").unwrap());
        let mut of_agent = row(&here, 5, GrantDuration::Persistent);
        of_agent.grant.subject = subject;
        assert!(grants.create(&of_agent).await.unwrap());
        let agents = store.catalog(CatalogKind::Agent);
        let agent = agents.find(&here, "reader").await.unwrap().unwrap();
        assert!(agents.delete(&here, &agent).await.unwrap());
        agents.create(&here, "reader", "{}", "admin").await.unwrap();
        assert!(grants.find(&here, grant_id(5)).await.unwrap().unwrap().revoked.is_some());
        grants.end_of_user(&here, "prn_00000000000000aa").await.unwrap();
        let left = grants.live().await.unwrap();
        assert_eq!(left.rows.len(), 1);
        assert_eq!(left.rows[0].workspace, there);
        assert!(store.runs().end(&there, run(2), RunEnd::Ended).await.unwrap());
        assert!(store.workspaces().delete(&there, true).await.unwrap());
        assert_eq!(grants.page(&there, "", 9, true).await.unwrap(), []);
    }
}

fn asked(
    workspace: &WorkspaceId,
    number: u8,
    of: GrantOf,
    expires_at: SystemTime,
) -> GrantRequestRow {
    GrantRequestRow {
        id: GrantRequestId::new([number; 8]),
        asked_as: format!("ask-{number}"),
        workspace: workspace.clone(),
        run: run(1),
        session: Some(session(1)),
        user: None,
        agent: Some(AgentName::new("reader").unwrap()),
        of,
        arguments: r#"{"a":1}"#.to_owned(),
        duration: "once",
        reason: "to write".to_owned(),
        requested_at: UNIX_EPOCH + Duration::from_secs(1_790_000_000),
        expires_at,
        status: GrantRequestStatus::Pending,
        decided: None,
        decision_reason: String::new(),
        grant: None,
    }
}

/// D15, X-M55: requests without a decision in time are found until their expiry is noted, and end
/// with their session; decided requests are found as long as their session is active.
#[tokio::test]
async fn d15_requests_end_in_time_and_with_their_session() {
    for place in Place::both() {
        let store = place.open().await;
        let here = tenant(&store, "team", 1).await;
        let requests = store.grant_requests();
        let late = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        let past = UNIX_EPOCH + Duration::from_secs(1_790_000_001);
        let of = |name: &str| {
            let scope = ToolScope::new(name).unwrap();
            GrantOf::ToolScope(ToolScopeGrant { scope, server: None, tool: None, arguments: None })
        };
        let all = [("a.one", past), ("a.two", late), ("a.three", late)];
        for (number, (name, expires_at)) in (1..).zip(all) {
            let one = asked(&here, number, of(name), expires_at);
            assert!(requests.ask(&one).await.unwrap().unwrap().1);
        }
        let overdue = requests.overdue(9).await.unwrap();
        assert_eq!(overdue.iter().map(|one| &one.of).collect::<Vec<_>>(), [&of("a.one")]);
        assert_eq!(overdue[0].status, GrantRequestStatus::Expired);
        requests.expire(&overdue[0]).await.unwrap();
        assert_eq!(requests.overdue(9).await.unwrap(), []);
        // The name of a request is for one thing, as long as the session lasts.
        let (own, later) = ((run(1), Some(session(1))), (run(1), Some(session(2))));
        assert!(!requests.is_other(own, "ask-1", &of("a.one")).await.unwrap());
        assert!(requests.is_other(own, "ask-1", &of("a.two")).await.unwrap());
        assert!(!requests.is_other(later, "ask-1", &of("a.two")).await.unwrap());
        // Two are open, of which one is meant again.
        let more = |count: i64| {
            let new = (0..count).map(|number| of(&format!("b.s{number}")));
            new.chain([of("a.two")]).collect::<Vec<_>>()
        };
        assert!(requests.is_room(run(1), &more(OPEN_MAX - 2)).await.unwrap());
        assert!(!requests.is_room(run(1), &more(OPEN_MAX - 1)).await.unwrap());

        let deny = GrantDecision { by: "ada", reason: "no", grant: None };
        assert!(requests.decide(&here, GrantRequestId::new([2; 8]), deny).await.unwrap());
        let decided = async || requests.decided_since(past, 9).await.unwrap();
        assert_eq!(
            decided().await.iter().map(|one| one.id).collect::<Vec<_>>(),
            [GrantRequestId::new([2; 8])]
        );
        assert!(store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
        assert_eq!(decided().await, []);
        let third = GrantRequestId::new([3; 8]);
        let found = requests.find(&here, third).await.unwrap().unwrap();
        assert_eq!(found.status, GrantRequestStatus::Expired);
        let grant = row(&here, 1, GrantDuration::Persistent);
        let approve = GrantDecision { grant: Some(&grant), ..deny };
        assert!(!requests.decide(&here, third, approve).await.unwrap());
        // Nor can a request of a run that was about to end.
        let after = asked(&here, 4, of("a.four"), late);
        assert!(requests.ask(&after).await.unwrap().unwrap().1);
        assert!(!requests.decide(&here, after.id, approve).await.unwrap());
    }
}

/// D15: a request made twice is one; it is decided once, in time, and an approval grants in the
/// same moment.
#[tokio::test]
async fn d15_a_request_is_decided_once() {
    for place in Place::both() {
        let store = place.open().await;
        let here = tenant(&store, "team", 1).await;
        let requests = store.grant_requests();
        let late = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        let first = asked(&here, 1, scope(), late);
        let (found, is_new) = requests.ask(&first).await.unwrap().unwrap();
        assert_eq!((found, is_new), (first.clone(), true));
        let again = asked(&here, 2, scope(), late);
        let (found, is_new) = requests.ask(&again).await.unwrap().unwrap();
        assert_eq!((found.id, is_new), (first.id, false));
        // A request without a decision in time.
        let other = GrantOf::ToolScope(ToolScopeGrant {
            scope: ToolScope::new("git.push").unwrap(),
            server: None,
            tool: None,
            arguments: None,
        });
        let past = UNIX_EPOCH + Duration::from_secs(1_790_000_001);
        let old = asked(&here, 3, other, past);
        assert!(requests.ask(&old).await.unwrap().unwrap().1);
        let status = |status| requests.page(&here, status, "", 9);
        let expired = status(Some(GrantRequestStatus::Expired)).await.unwrap();
        assert_eq!(expired.iter().map(|one| one.id).collect::<Vec<_>>(), [old.id]);
        let deny = GrantDecision { by: "ada", reason: "no", grant: None };
        assert!(!requests.decide(&here, old.id, deny).await.unwrap(), "it is too late");

        let grant = row(&here, 1, GrantDuration::Once);
        let approve = GrantDecision { grant: Some(&grant), ..deny };
        let (gone, mut impossible) = (AgentName::new("gone").unwrap(), grant.clone());
        impossible.grant.subject = GrantSubject::Agent(gone);
        let failed = GrantDecision { grant: Some(&impossible), ..deny };
        assert!(!requests.decide(&here, first.id, failed).await.unwrap());
        assert_eq!(status(Some(GrantRequestStatus::Pending)).await.unwrap().len(), 1);
        assert!(requests.decide(&here, first.id, approve).await.unwrap());
        assert!(!requests.decide(&here, first.id, deny).await.unwrap());
        let found = requests.find(&here, first.id).await.unwrap().unwrap();
        assert_eq!(found.status, GrantRequestStatus::Approved);
        assert_eq!((found.grant, found.decision_reason.as_str()), (Some(grant_id(1)), "no"));
        assert_eq!(found.decided.unwrap().1, "ada");
        assert_eq!(store.grants().find(&here, grant_id(1)).await.unwrap(), Some(grant));
        // A run with too many open requests is refused.
        for number in 1..OPEN_MAX {
            let scope = ToolScope::new(&format!("a.s{number}")).unwrap();
            let of = ToolScopeGrant { scope, server: None, tool: None, arguments: None };
            let one =
                asked(&here, u8::try_from(number + 10).unwrap(), GrantOf::ToolScope(of), late);
            assert!(requests.ask(&one).await.unwrap().is_some());
        }
        let more = asked(&here, 200, scope(), late);
        assert_eq!(requests.ask(&more).await.unwrap(), None);
        assert_eq!(status(None).await.unwrap().len(), 9);
    }
}

/// People find requests by their state and their agent, in the order of time and page by page.
#[tokio::test]
async fn x_m56_requests_are_found_by_state_in_the_order_of_time() {
    for place in Place::both() {
        let store = place.open().await;
        let here = tenant(&store, "team", 1).await;
        let requests = store.grant_requests();
        let late = UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        let past = UNIX_EPOCH + Duration::from_secs(1_790_000_001);
        let of = |name: &str| {
            let scope = ToolScope::new(name).unwrap();
            GrantOf::ToolScope(ToolScopeGrant { scope, server: None, tool: None, arguments: None })
        };
        // The order of ids is another one than that of time.
        for (number, name, since, until) in [
            (1, "a.newest", 30, late),
            (2, "a.oldest", 10, late),
            (3, "a.middle", 20, late),
            (4, "a.expired", 5, past),
            (5, "a.denied", 40, late),
        ] {
            let mut one = asked(&here, number, of(name), until);
            one.requested_at = UNIX_EPOCH + Duration::from_secs(1_790_000_000 - 100 + since);
            assert!(requests.ask(&one).await.unwrap().unwrap().1);
        }
        let deny = GrantDecision { by: "ada", reason: "no", grant: None };
        assert!(requests.decide(&here, GrantRequestId::new([5; 8]), deny).await.unwrap());
        let found = async |state, agent: &str, after| {
            let agent = (!agent.is_empty()).then(|| AgentName::new(agent).unwrap());
            let search = RequestSearch { state, agent, after, limit: 2 };
            let rows = requests.search(&here, &search).await.unwrap();
            let next =
                rows.last().map(|row| RequestPlace { requested_at: row.requested_at, id: row.id });
            (rows.into_iter().map(|row| row.id).collect::<Vec<_>>(), next)
        };
        let ids = |numbers: &[u8]| -> Vec<_> {
            numbers.iter().map(|number| GrantRequestId::new([*number; 8])).collect()
        };
        let (first, next) = found(RequestState::Open, "", None).await;
        assert_eq!(first, ids(&[2, 3]));
        assert_eq!(found(RequestState::Open, "", next).await.0, ids(&[1]));
        assert_eq!(found(RequestState::Open, "reader", None).await.0, ids(&[2, 3]));
        assert_eq!(found(RequestState::Open, "writer", None).await.0, ids(&[]));
        let (closed, next) = found(RequestState::Closed(None), "", None).await;
        assert_eq!(closed, ids(&[5, 4]));
        assert_eq!(found(RequestState::Closed(None), "", next).await.0, ids(&[]));
        let expired = RequestState::Closed(Some(GrantRequestStatus::Expired));
        assert_eq!(found(expired, "", None).await.0, ids(&[4]));
    }
}

/// People find the grants that count, the newest first, by their subject and their scope.
#[tokio::test]
async fn x_e76_grants_are_found_by_subject_and_scope() {
    for place in Place::both() {
        let store = place.open().await;
        let here = tenant(&store, "team", 1).await;
        let grants = store.grants();
        for (number, name) in [(1, "git.write"), (2, "git.write_all"), (3, "git.write-all")] {
            let mut one = row(&here, number, GrantDuration::Persistent);
            let scope = ToolScope::new(name).unwrap();
            one.grant.of = GrantOf::ToolScope(ToolScopeGrant {
                scope,
                server: None,
                tool: None,
                arguments: None,
            });
            one.granted_at = UNIX_EPOCH + Duration::from_secs(100 - u64::from(number));
            assert!(grants.create(&one).await.unwrap());
        }
        assert!(grants.revoke(&here, grant_id(3), "ada").await.unwrap());
        let found = async |search: GrantSearch| {
            let search = GrantSearch { limit: 2, ..search };
            let rows = grants.search(&here, &search).await.unwrap();
            rows.into_iter().map(|row| row.grant.id).collect::<Vec<_>>()
        };
        let scope = |name: &str| Some(ToolScope::new(name).unwrap());
        assert_eq!(found(GrantSearch::default()).await, [grant_id(1), grant_id(2)]);
        let ended = GrantSearch { with_ended: true, ..GrantSearch::default() };
        let after =
            GrantPlace { granted_at: UNIX_EPOCH + Duration::from_secs(98), id: grant_id(2) };
        let rest = GrantSearch { after: Some(after), ..ended.clone() };
        assert_eq!(found(rest).await, [grant_id(3)]);
        let write = GrantSearch { scope: scope("git.write"), ..ended.clone() };
        assert_eq!(found(write).await, [grant_id(1)]);
        // `_` is a letter, and no pattern.
        let all = GrantSearch { scope: scope("git.write_all"), ..ended };
        assert_eq!(found(all).await, [grant_id(2)]);
        let user = PrincipalId::new("prn_00000000000000aa").unwrap();
        let theirs = GrantSearch { user: Some(user), ..GrantSearch::default() };
        assert_eq!(found(theirs).await, [grant_id(1), grant_id(2)]);
        let agent = Some(AgentName::new("reader").unwrap());
        let of_agent = GrantSearch { agent, ..GrantSearch::default() };
        assert_eq!(found(of_agent).await, []);
    }
}
