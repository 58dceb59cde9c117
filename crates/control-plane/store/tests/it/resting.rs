//! Sessions that are due to resume, and runs that executors carry out, with several daemons on one
//! store.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, SystemTime},
};

use narthex_model::{ExecutorName, RunEnd, RunId, SessionId, WorkspaceId};
use narthex_store::{
    Awaited, Claim, DoneSession, EventsOf, GivenAt, NewEvent, NewRest, NewRun, NewUnread,
    RestingSession, SessionRow, Store,
};
use narthex_testkit::rounds;

use crate::support::{Place, id};

const HOUR: Duration = Duration::from_secs(3600);

fn run(number: u16) -> RunId {
    let [high, low] = number.to_be_bytes();
    RunId::new([0, 0, 0, 0, high, low])
}

fn session(number: u16) -> SessionId {
    let [high, low] = number.to_be_bytes();
    SessionId::new([0, 0, 0, 0, high, low])
}

fn row(workspace: &WorkspaceId, number: u16, parent: Option<RunId>) -> SessionRow {
    SessionRow {
        workspace: workspace.clone(),
        id: session(number),
        agent: "reader".to_owned(),
        parent,
        depth: 0,
        sealed: "sealed parameters".to_owned(),
        created_at: SystemTime::UNIX_EPOCH,
        created_by: "admin".to_owned(),
        ended_at: None,
        how: None,
        agent_type: None,
    }
}

fn new(workspace: &WorkspaceId, number: u16, of: u16) -> NewRun<'_> {
    NewRun {
        id: run(number),
        workspace,
        session: session(of),
        agent: "reader",
        parent: None,
        agent_env: &[],
        token: "hash",
        sealed: "sealed scope",
        created_by: "admin",
        expires_at: SystemTime::now() + HOUR,
        has_sockets: false,
        driver: None,
        awaited: None,
        spawned: None,
        is_owed: false,
        suspended_at: None,
        agent_type: None,
    }
}

pub(crate) fn message_of<'e>(of: &'e EventsOf, message: &'e str) -> NewEvent<'e> {
    NewEvent {
        of,
        run: Some(run(1)),
        kind: "user.message",
        message_id: Some(message),
        payload: "{}",
        happened_at: SystemTime::UNIX_EPOCH,
        turn: None,
        unread: None,
        owed: None,
        is_own: false,
    }
}

/// A generator of numbers that are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % most
    }
}

/// A model of an orchestrator's session.
#[derive(Default)]
struct Model {
    here: WorkspaceId,
    next: u16,
    /// The runs of it that live.
    living: Vec<u16>,
    children: Vec<u16>,
    /// Ended children, and the ones among them that each run knew of when it began.
    ended: Vec<SessionId>,
    known: BTreeMap<u16, Vec<SessionId>>,
    is_owed: bool,
}

impl Model {
    fn number(&mut self) -> u16 {
        self.next += 1;
        self.next
    }

    fn rest(&self) -> NewRest {
        let sealed = "sealed prompt".to_owned();
        NewRest { workspace: self.here.clone(), session: session(1), run: run(1), sealed }
    }

    async fn due(&self, store: &Store) -> Vec<RestingSession> {
        store.resting().due(SystemTime::now() + HOUR, 9).await.unwrap()
    }

    /// An event comes for the session: the session is due to resume unless an active run gets the
    /// event.
    fn happened(&mut self) {
        self.is_owed |= self.living.is_empty();
    }

    /// Sends a message of a child to the session. Returns true if the session became due to resume.
    async fn told(&mut self, store: &Store) -> bool {
        let before = self.due(store).await.len();
        let message = format!("m{}", self.number());
        let (of, rest) = (self.events(), self.rest());
        let event = message_of(&of, &message);
        let new = NewEvent { owed: Some(&rest), ..event };
        assert!(store.events().append(&[new]).await.unwrap().is_some());
        let after = self.due(store).await.len();
        // A repeated message is the same one, and makes no session due to resume.
        assert!(store.events().append(&[new]).await.unwrap().is_none());
        assert_eq!(self.due(store).await.len(), after);
        after > before
    }

    fn events(&self) -> EventsOf {
        EventsOf { workspace: self.here.clone(), session: session(1) }
    }

    async fn step(&mut self, store: &Store, dice: &mut Dice) {
        match dice.below(6) {
            0 if !self.living.is_empty() => {
                let number = self.number();
                let new =
                    NewRun { parent: Some(run(self.living[0])), ..new(&self.here, number, number) };
                let row = row(&self.here, number, Some(run(self.living[0])));
                assert!(store.runs().create(new, Some(&row)).await.unwrap().is_some());
                self.children.push(number);
            }
            1 if !self.children.is_empty() => {
                let at = usize::try_from(dice.below(self.children.len() as u64)).unwrap();
                let child = session(self.children.swap_remove(at));
                self.ended.push(child);
                let (rest, how) = (self.rest(), RunEnd::Ended);
                let sessions = store.sessions();
                assert!(sessions.end_owing(&self.here, child, how, Some(&rest)).await.unwrap());
                assert!(!sessions.end_owing(&self.here, child, how, Some(&rest)).await.unwrap());
                self.happened();
            }
            2 if !self.living.is_empty() => {
                let number = self.living.pop().unwrap();
                let (rest, how) = (NewRest { run: run(number), ..self.rest() }, RunEnd::Ended);
                // Now and then the run also got the last end.
                let mut given = self.known.remove(&number).unwrap_or_default();
                if dice.below(2) == 0 {
                    given.clone_from(&self.ended);
                }
                let owing = Some((&rest, &*given));
                let runs = store.runs();
                let ended = runs.end_owing(&self.here, run(number), how, owing).await;
                assert!(ended.unwrap());
                if self.children.is_empty() || given.len() < self.ended.len() {
                    self.happened();
                }
            }
            3 => {
                let was_owed = self.is_owed;
                self.happened();
                assert_eq!(self.told(store).await, self.is_owed && !was_owed);
            }
            // Two daemons see that the session is due to resume.
            4 => self.goes_on(store).await,
            // A user resumes the session.
            _ => {
                let number = self.number();
                let new = new(&self.here, number, 1);
                assert!(store.runs().create(new, None).await.unwrap().is_some());
                self.begins(number);
                self.is_owed = false;
            }
        }
    }

    fn begins(&mut self, number: u16) {
        self.living.push(number);
        self.known.insert(number, self.ended.clone());
    }

    async fn goes_on(&mut self, store: &Store) {
        let seen = [self.due(store).await, self.due(store).await];
        let mut begun = 0;
        for due in seen {
            for resting in due {
                // A daemon that has not taken the session creates no run, and a late attempt is
                // refused.
                let taken = store.resting().take(&resting, SystemTime::now()).await.unwrap();
                let number = self.number();
                let new = NewRun { is_owed: true, ..new(&self.here, number, 1) };
                let row = store.runs().create(new, None).await.unwrap();
                assert_eq!(row.is_some(), taken);
                if let Some(row) = row {
                    assert_eq!((row.id, row.session), (run(number), session(1)));
                    self.begins(number);
                    begun += 1;
                }
            }
        }
        assert_eq!(begun, usize::from(self.is_owed));
        self.is_owed = false;
    }
}

/// O80: events for a session without an active run are noted with their source, in any order, and
/// become one run.
#[tokio::test]
async fn o80_events_for_an_inactive_session_cause_exactly_one_run() {
    for (seed, _) in (0..).zip(0..rounds(6)) {
        for place in Place::both() {
            let (store, here) = (place.open().await, id("default"));
            let mut dice = Dice(seed);
            assert!(
                store.runs().create(new(&here, 1, 1), Some(&row(&here, 1, None))).await.is_ok()
            );
            let mut model = Model { here: here.clone(), next: 1, ..Model::default() };
            model.begins(1);
            for _ in 0..100 {
                model.step(&store, &mut dice).await;
                let owed = model.due(&store).await.len();
                assert_eq!(owed, usize::from(model.is_owed), "seed {seed}");
            }
            // An ended session is never due to resume.
            assert!(store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
            assert!(model.due(&store).await.is_empty());
            assert!(!model.told(&store).await);
            let again = NewRun { is_owed: true, ..new(&here, 9999, 1) };
            assert!(store.runs().create(again, None).await.unwrap().is_none());
        }
    }
}

/// O80: a child's message to a run that ends without reading it is not lost, though the child is
/// still active.
#[tokio::test]
async fn o80_an_unread_message_of_a_child_makes_its_parent_session_due() {
    let now = SystemTime::now() + Duration::from_secs(60);
    let unread = |sender| NewUnread { sender, expires_at: None, due_at: now };
    let child = Some(session(2));
    let cases = [
        (None, now, false, false),
        (Some(unread(child)), now, false, true),
        (Some(unread(child)), SystemTime::UNIX_EPOCH, false, false),
        (Some(unread(child)), now, true, false),
        (Some(unread(None)), now, false, false),
    ];
    for (number, (unread, happened_at, is_given, is_owed)) in cases.into_iter().enumerate() {
        for place in Place::both() {
            let (store, here) = (place.open().await, id("default"));
            store.runs().create(new(&here, 1, 1), Some(&row(&here, 1, None))).await.unwrap();
            let begun = NewRun { parent: Some(run(1)), ..new(&here, 2, 2) };
            let child = row(&here, 2, Some(run(1)));
            assert!(store.runs().create(begun, Some(&child)).await.unwrap().is_some());
            let (workspace, sealed) = (here.clone(), "sealed".to_owned());
            let rest = NewRest { workspace, session: session(1), run: run(1), sealed };
            let of = EventsOf { workspace: here.clone(), session: session(1) };
            let owed = Some(&rest);
            let told = NewEvent { owed, unread, happened_at, ..message_of(&of, "m") };
            let seq = store.events().append(&[told]).await.unwrap().unwrap().row.seq;
            if is_given {
                let at = GivenAt { now: SystemTime::now(), given_again: now, again: now };
                store.inboxes().give(&of, Some(seq), at).await.unwrap();
            }
            assert!(store.resting().due(now, 9).await.unwrap().is_empty(), "a run hears it");
            let owed = owed.map(|owed| (owed, &[][..]));
            let ended = store.runs().end_owing(&here, run(1), RunEnd::Ended, owed).await;
            assert!(ended.unwrap());
            let due = store.resting().due(now, 9).await.unwrap().len();
            assert_eq!(due, usize::from(is_owed), "case {number}");
        }
    }
}

/// Creates an orchestrator's session with its run 1, and its active children 2 and 3.
async fn orchestrator(store: &Store, here: &WorkspaceId) {
    store.runs().create(new(here, 1, 1), Some(&row(here, 1, None))).await.unwrap();
    for number in [2, 3] {
        let begun = NewRun { parent: Some(run(1)), ..new(here, number, number) };
        let child = row(here, number, Some(run(1)));
        assert!(store.runs().create(begun, Some(&child)).await.unwrap().is_some());
    }
}

/// Waits until the clock has gone on.
fn is_later_than(at: SystemTime) {
    while SystemTime::now() <= at + Duration::from_millis(1) {}
}

/// O80, X-E88: the end of a child that no run got makes the session due to resume, though another
/// child is active. An end that the run knew of, or that came before it, does not.
#[tokio::test]
async fn x_e88_an_unreported_end_of_a_child_makes_the_session_due() {
    let cases = [(false, false, true), (true, false, false), (false, true, false)];
    for (place, (is_given, is_before, is_owed)) in
        cases.into_iter().flat_map(|case| Place::both().map(move |place| (place, case)))
    {
        let (store, here) = (place.open().await, id("default"));
        orchestrator(&store, &here).await;
        assert!(store.sessions().end(&here, session(2), RunEnd::Failed).await.unwrap());
        let mut last = 1;
        if is_before {
            assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
            let ended = store.sessions().find(&here, session(2)).await.unwrap().unwrap();
            is_later_than(ended.ended_at.unwrap());
            last = 4;
            assert!(store.runs().create(new(&here, last, 1), None).await.unwrap().is_some());
        }
        let (workspace, sealed) = (here.clone(), "sealed".to_owned());
        let rest = NewRest { workspace, session: session(1), run: run(last), sealed };
        let given = if is_given { vec![session(3), session(2)] } else { vec![session(3)] };
        let owing = Some((&rest, &*given));
        assert!(store.runs().end_owing(&here, run(last), RunEnd::Ended, owing).await.unwrap());
        let due = store.resting().due(SystemTime::now(), 9).await.unwrap().len();
        assert_eq!(due, usize::from(is_owed), "{is_given} {is_before}");
    }
}

/// A session under an attempt is left alone until the next one is due.
#[tokio::test]
async fn one_daemon_takes_a_session_that_is_due() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        store.runs().create(new(&here, 1, 1), Some(&row(&here, 1, None))).await.unwrap();
        assert!(store.runs().end(&here, run(1), RunEnd::Ended).await.unwrap());
        let (workspace, sealed) = (here.clone(), "sealed".to_owned());
        let rest = NewRest { workspace, session: session(1), run: run(1), sealed };
        let of = EventsOf { workspace: here.clone(), session: session(1) };
        let told = NewEvent { owed: Some(&rest), ..message_of(&of, "m") };
        assert!(store.events().append(&[told]).await.unwrap().is_some());
        let now = SystemTime::now();
        let due = store.resting().due(now, 9).await.unwrap();
        assert_eq!(due, [RestingSession { rest: rest.clone(), tries: 0 }]);
        assert!(store.resting().take(&due[0], now + HOUR).await.unwrap());
        assert!(!store.resting().take(&due[0], now + HOUR).await.unwrap());
        assert!(store.resting().due(now, 9).await.unwrap().is_empty());
        let later = store.resting().due(now + HOUR, 9).await.unwrap();
        assert_eq!(later, [RestingSession { rest, tries: 1 }]);
        assert!(store.resting().forget(&here, session(1)).await.unwrap());
        assert!(!store.resting().forget(&here, session(1)).await.unwrap());
    }
}

/// A run waits for an executor that a daemon has for its workspace; once no daemon reports it, the
/// run is found. A claim without any result counts nowhere, and a claim ends with its run.
#[tokio::test]
async fn runs_wait_only_for_known_executors() {
    for place in Place::both() {
        let (store, here, there) = (place.open().await, id("default"), id("team"));
        let name = ExecutorName::new("crew").unwrap();
        let awaited = Awaited { model: "", runtime: "", executor: Some(&name) };
        let new = NewRun { awaited: Some(awaited), ..new(&here, 1, 1) };
        let row = store.runs().create(new, Some(&row(&here, 1, None))).await.unwrap().unwrap();
        let (runs, until) = (store.runs(), SystemTime::now() + HOUR);
        let unserved = async || runs.unserved(9).await.unwrap().len();
        assert_eq!(unserved().await, 1);
        runs.serve("one", &[(name.clone(), there.clone())], until).await.unwrap();
        assert_eq!(unserved().await, 1, "it is for another workspace");
        let all = [(name.clone(), there.clone()), (name.clone(), here.clone())];
        runs.serve("two", &all, until).await.unwrap();
        assert_eq!(unserved().await, 0);
        assert_eq!(runs.of_executor(&name, &there, 9).await.unwrap(), []);
        assert_eq!(runs.of_executor(&name, &here, 9).await.unwrap(), std::slice::from_ref(&row));

        let turn = row.turn.number;
        let claim =
            |id| Claim { id, by: "two", executor: Some(&name), until, token: "other", turn };
        assert!(runs.claim(&here, row.id, claim("c1")).await.unwrap());
        assert!(!runs.claim(&here, row.id, claim("c2")).await.unwrap());
        assert!(!runs.give_back(&here, row.id, "c2").await.unwrap());
        assert!(runs.give_back(&here, row.id, "c1").await.unwrap());
        let waiting = async || runs.find(row.id).await.unwrap().unwrap().waiting.unwrap();
        let free = waiting().await;
        assert!(free.is_free(SystemTime::now()) && free.attempts == 0);
        assert!(runs.claim(&here, row.id, claim("c3")).await.unwrap());
        assert!(!waiting().await.is_free(SystemTime::now()));
        runs.serve("two", &[], until).await.unwrap();
        assert_eq!(unserved().await, 0, "an executor carries the run out");
        assert!(runs.end(&here, row.id, RunEnd::Ended).await.unwrap());
        assert!(waiting().await.is_free(SystemTime::now()));
        assert!(runs.living().await.unwrap().is_empty());
        let now = SystemTime::now();
        let ended = runs.ended_since(now - Duration::from_secs(60)).await.unwrap().unwrap();
        assert!(ended.contains(&row.id), "{ended:?}");
        let later = runs.ended_since(now + Duration::from_secs(60)).await.unwrap();
        assert_eq!(later, Some(HashSet::new()));
        // An old report of a daemon's executors has expired.
        runs.serve("one", &[(name.clone(), here.clone())], SystemTime::UNIX_EPOCH).await.unwrap();
        let new = NewRun { awaited: Some(awaited), ..self::new(&here, 2, 2) };
        runs.create(new, Some(&self::row(&here, 2, None))).await.unwrap();
        assert_eq!(unserved().await, 1);
    }
}

/// O80: a session whose agent has reported that it is done is found for as long as a run of it is
/// active.
#[tokio::test]
async fn completed_sessions_with_an_active_run_are_found() {
    for place in Place::both() {
        let (store, here) = (place.open().await, id("default"));
        for number in [1, 2] {
            let row = row(&here, number, None);
            assert!(
                store
                    .runs()
                    .create(new(&here, number, number), Some(&row))
                    .await
                    .unwrap()
                    .is_some()
            );
        }
        let of = EventsOf { workspace: here.clone(), session: session(1) };
        let kind = "session.completed";
        let happened_at = SystemTime::UNIX_EPOCH + HOUR;
        let new = NewEvent { kind, happened_at, ..message_of(&of, "done") };
        assert!(store.events().append(&[new]).await.unwrap().is_some());
        let other = NewEvent { kind, happened_at, ..message_of(&of, "another") };
        assert!(store.events().append(&[other]).await.unwrap().is_some());
        let found = async |until| store.resting().done((kind, "done"), until).await.unwrap();
        let expected =
            DoneSession { workspace: here.clone(), session: session(1), run: Some(run(1)) };
        assert_eq!(found(happened_at).await, [expected]);
        assert_eq!(found(happened_at - Duration::from_secs(1)).await, []);
        assert!(store.sessions().end(&here, session(1), RunEnd::Ended).await.unwrap());
        assert_eq!(found(happened_at).await, []);
    }
}
