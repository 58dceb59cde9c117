//! The audit in the tables: chains that grow from where they are, pages by time, and beginnings.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use narthex_store::{AuditChain, AuditFilter, AuditPlace, AuditRow, AuditSettings, Store};

use crate::support::Place;

fn at(number: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_790_000_000_000 + number)
}

/// An event of a writer; several are of one time. Some are of a run.
fn event(writer: &str, seq: u64) -> AuditRow {
    AuditRow {
        workspace: "team".to_owned(),
        writer: writer.to_owned(),
        seq,
        happened_at: at(seq / 3),
        kind: if seq.is_multiple_of(2) {
            "workspace.secret.set"
        } else {
            "session.mcp.tool_called"
        }
        .to_owned(),
        actor: format!("actor-{}", seq % 3),
        resource: format!("resource-{seq}"),
        run: if seq.is_multiple_of(4) { "run-4".to_owned() } else { String::new() },
        document: format!("{{\"seq\":{seq}}}"),
    }
}

fn grown(before: &AuditChain, to: u64) -> (AuditChain, AuditChain) {
    let mut now = before.clone();
    (now.head_seq, now.head_hash) = (to, format!("hash-{to}"));
    (before.clone(), now)
}

async fn with_events(place: &Place, writers: &[&str], count: u64) -> Store {
    let store = place.open().await;
    for writer in writers {
        let rows: Vec<_> = (1..=count).map(|seq| event(writer, seq)).collect();
        let chain = grown(&AuditChain::empty("team", writer), count);
        assert!(store.audit().append(&[chain], &rows).await.unwrap());
    }
    store
}

fn all(workspace: &str) -> AuditFilter<'_> {
    let (since, until) = (UNIX_EPOCH, None);
    AuditFilter { workspace, actor: "", resource: "", run: "", kind: "", since, until }
}

/// D25: a second process cannot repeat an append of the first; stored events stay as they are.
#[tokio::test]
async fn a_chain_grows_only_at_its_head() {
    for place in Place::both() {
        let store = with_events(&place, &["w"], 3).await;
        let empty = AuditChain::empty("team", "w");
        let late = store.audit().append(&[grown(&empty, 4)], &[event("w", 4)]).await.unwrap();
        assert!(!late);
        let chain = store.audit().chain("team", "w").await.unwrap().unwrap();
        assert_eq!((chain.head_seq, chain.head_hash.as_str()), (3, "hash-3"));
        assert_eq!(store.audit().newer(&all("team"), None, 10).await.unwrap().len(), 3);
        let mut other = event("w", 3);
        other.document = "changed".to_owned();
        assert!(store.audit().append(&[grown(&chain, 4)], &[other, event("w", 4)]).await.unwrap());
        let rows = store.audit().of_chain(&chain, (2, 4), 10).await.unwrap();
        let documents: Vec<_> = rows.iter().map(|row| row.document.as_str()).collect();
        assert_eq!(documents, ["{\"seq\":3}", "{\"seq\":4}"]);
        assert_eq!(store.audit().owners().await.unwrap(), ["team"]);
        assert_eq!(store.audit().chain("team", "other").await.unwrap(), None);
        assert_eq!(store.audit().chain("", "w").await.unwrap(), None);
    }
}

/// Whatever their number, and also where some of them are there already.
#[tokio::test]
async fn each_event_is_added_once() {
    for place in Place::both() {
        let store = place.open().await;
        let mut chain = AuditChain::empty("team", "w");
        for count in [1, 7, 8, 9, 63, 64, 65, 64 + 8 + 1, 2 * 64 + 3 * 8 + 2] {
            let first = chain.head_seq.saturating_sub(3).max(1);
            let last = chain.head_seq + count;
            let rows: Vec<_> = (first..=last).map(|seq| event("w", seq)).collect();
            let (before, now) = grown(&chain, last);
            assert!(store.audit().append(&[(before, now.clone())], &rows).await.unwrap());
            let stored = store.audit().of_chain(&now, (0, last), 10_000).await.unwrap();
            let expected: Vec<_> = (1..=last).map(|seq| event("w", seq)).collect();
            assert_eq!(stored, expected, "{count} more");
            chain = now;
        }
    }
}

#[tokio::test]
async fn pages_follow_each_other_in_both_directions() {
    for place in Place::both() {
        let store = with_events(&place, &["a", "b"], 20).await;
        let filter = all("team");
        let place = |row: &AuditRow| AuditPlace {
            happened_at: row.happened_at,
            writer: row.writer.clone(),
            seq: row.seq,
        };
        let (mut up, mut down) = (Vec::new(), Vec::new());
        loop {
            let after = up.last().map(place);
            let page = store.audit().newer(&filter, after.as_ref(), 7).await.unwrap();
            if page.is_empty() {
                break;
            }
            up.extend(page);
        }
        loop {
            let before = down.last().map(place);
            let page = store.audit().older(&filter, before.as_ref(), 7).await.unwrap();
            if page.is_empty() {
                break;
            }
            down.extend(page);
        }
        down.reverse();
        assert_eq!(up.len(), 40);
        assert!(up.is_sorted_by_key(|row| row.happened_at));
        assert_eq!(up, down);
    }
}

#[tokio::test]
async fn events_are_found_by_kind_actor_resource_time_and_run() {
    for place in Place::both() {
        let store = with_events(&place, &["w"], 12).await;
        let found = async |filter: AuditFilter<'_>| {
            let rows = store.audit().newer(&filter, None, 100).await.unwrap();
            rows.iter().map(|row| row.seq).collect::<Vec<_>>()
        };
        let filter = all("team");
        assert_eq!(found(AuditFilter { kind: "workspace.", ..filter }).await, [2, 4, 6, 8, 10, 12]);
        assert_eq!(found(AuditFilter { actor: "actor-1", ..filter }).await, [1, 4, 7, 10]);
        assert_eq!(found(AuditFilter { resource: "resource-5", ..filter }).await, [5]);
        assert_eq!(
            found(AuditFilter { since: at(3), until: Some(at(4)), ..filter }).await,
            [9, 10, 11]
        );
        assert!(found(AuditFilter { run: "r", ..filter }).await.is_empty());
        let of_run = AuditFilter { run: "run-4", ..filter };
        assert_eq!(found(of_run).await, [4, 8, 12]);
        assert_eq!(found(AuditFilter { actor: "actor-2", ..of_run }).await, [8]);
        assert_eq!(found(AuditFilter { workspace: "other", ..of_run }).await, [0; 0]);
        let newest = store.audit().older(&of_run, None, 2).await.unwrap();
        assert_eq!(newest.iter().map(|row| row.seq).collect::<Vec<_>>(), [12, 8]);
        let place = AuditPlace { happened_at: at(2), writer: "w".to_owned(), seq: 8 };
        let before = store.audit().older(&of_run, Some(&place), 2).await.unwrap();
        assert_eq!(before.iter().map(|row| row.seq).collect::<Vec<_>>(), [4]);
        assert!(found(all("other")).await.is_empty());
    }
}

#[tokio::test]
async fn trimmed_events_are_removed_and_the_chain_records_its_new_base() {
    for place in Place::both() {
        let store = with_events(&place, &["w"], 12).await;
        let chain = store.audit().chain("team", "w").await.unwrap().unwrap();
        assert_eq!(store.audit().first_since(&chain, at(2)).await.unwrap(), Some(6));
        assert_eq!(store.audit().first_since(&chain, at(9)).await.unwrap(), None);
        assert_eq!(store.audit().nth_newest("team", 4).await.unwrap(), Some(at(2)));
        assert_eq!(store.audit().nth_newest("team", 99).await.unwrap(), None);
        let mut now = chain.clone();
        (now.base_seq, now.base_hash) = (5, "hash-5".to_owned());
        assert!(store.audit().trim(&chain, &now).await.unwrap());
        assert!(!store.audit().trim(&chain, &now).await.unwrap());
        assert_eq!(store.audit().newer(&all("team"), None, 100).await.unwrap().len(), 7);
        assert_eq!(store.audit().chains("team").await.unwrap(), [now.clone()]);
        now.seal = "sealed".to_owned();
        assert!(store.audit().reseal(&now).await.unwrap());
        assert!(!store.audit().reseal(&chain).await.unwrap());
        assert_eq!(store.audit().chains("team").await.unwrap(), [now]);
        let settings = AuditSettings { kept_days: 3, kept_events: 4 };
        assert_eq!(store.audit().settings("team").await.unwrap(), AuditSettings::default());
        store.audit().set("team", AuditSettings::default()).await.unwrap();
        store.audit().set("team", settings).await.unwrap();
        assert_eq!(store.audit().settings("team").await.unwrap(), settings);
    }
}
