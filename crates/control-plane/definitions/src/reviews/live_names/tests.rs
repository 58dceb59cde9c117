//! Numbers of lists read, and of names made, for many servers.

use bytes::Bytes;
use narthex_model::{Alias, CallErrorKind, ServerFailure};
use narthex_upstream::{InventoryEntry, Listed};

use super::*;

const SERVERS: usize = 200;

fn row(server: &str, list: &Arc<Inventory>) -> Arc<ServerRow> {
    let error = ServerFailure::new(CallErrorKind::TransportError, "not there");
    let row = ServerRow::failed(Alias::new(server).unwrap(), error);
    Arc::new(row.seen_as(list.clone(), true))
}

fn list(tools: &[&str]) -> Arc<Inventory> {
    let entry = |name: &&str| {
        let raw = Bytes::from(format!(r#"{{"name":"{name}"}}"#));
        (Listed::Tool, InventoryEntry::new(name, raw))
    };
    Arc::new(Inventory::new(tools.iter().map(entry)))
}

fn snapshot(rows: &[Arc<ServerRow>]) -> Arc<Snapshot> {
    Arc::new(Snapshot::joined(1, rows.to_vec(), &[]))
}

fn many() -> Vec<Arc<ServerRow>> {
    let of = |at: usize| row(&format!("s{at}"), &list(&[&format!("read_{at}"), "greet"]));
    (0..SERVERS).map(of).collect()
}

fn rejected(names: &[&str]) -> HashSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// S24: each list is read once for all servers, and again only when it changes; all servers are
/// compared with the same names, which are made once.
#[tokio::test]
async fn s24_lists_are_read_once_for_all_servers() {
    let named = KnownNames::default();
    let mut rows = many();
    let before = named.sums(&snapshot(&rows));
    for at in 0..SERVERS {
        let now = named.sums(&snapshot(&rows));
        let server = format!("s{at}");
        assert_eq!(now.beside(&server, 0), before.beside(&server, 0));
    }
    assert_eq!(named.lists().read, SERVERS as u64);
    let shown = snapshot(&rows);
    for _ in 0..SERVERS {
        let live = named.live(|| shown.clone()).await.unwrap();
        assert_eq!(live.made, 1);
        assert!(live.names.look_alike("other", "s7_read_7").is_some());
    }

    rows[3] = row("s3", &list(&["write"]));
    let shown = snapshot(&rows);
    let after = named.sums(&shown);
    assert_eq!(named.lists().read, SERVERS as u64 + 1);
    // The digest for a server does not include its own list.
    assert_eq!(after.beside("s3", 0), before.beside("s3", 0));
    assert_ne!(after.beside("s4", 0), before.beside("s4", 0));
    assert_ne!(after.beside("s3", 1), after.beside("s3", 0));
    for _ in 0..SERVERS {
        let live = named.live(|| shown.clone()).await.unwrap();
        assert_eq!(live.made, 2);
        assert!(live.names.look_alike("other", "s3_write").is_some());
    }
    assert_eq!(named.lists().read, SERVERS as u64 + 1);
}

/// S24: servers that start at the same time share the names that are made once; no caller gets
/// names older than its request.
#[tokio::test]
async fn s24_servers_that_start_at_the_same_time_share_the_names() {
    let named = Arc::new(KnownNames::default());
    let moments = Arc::new(AtomicU64::new(0));
    for round in 1..=3 {
        // As if names were being made: all callers of this round come meanwhile.
        let making = named.live.lock().await;
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..SERVERS {
            asking.spawn(made_at(named.clone(), moments.clone()));
        }
        while named.asked.load(Ordering::Relaxed) < round * SERVERS as u64 {
            tokio::task::yield_now().await;
        }
        drop(making);
        while let Some(made) = asking.join_next().await {
            assert_eq!(made.unwrap(), round);
        }
        assert_eq!(moments.load(Ordering::Relaxed), round, "rows were read once");
    }
}

/// The number of names once there are those of this moment. Rows differ at each moment.
async fn made_at(named: Arc<KnownNames>, moments: Arc<AtomicU64>) -> u64 {
    let rows = || {
        let moment = moments.fetch_add(1, Ordering::Relaxed);
        snapshot(&[row("docs", &list(&[&format!("at_{moment}")]))])
    };
    named.live(rows).await.unwrap().made
}

/// S24: the digest of names does not depend on their order, and names of two servers differ from
/// those of another two.
#[test]
fn s24_the_digest_does_not_depend_on_the_order_of_names() {
    let named = KnownNames::default();
    let [docs, mail] = [row("docs", &list(&["a", "b"])), row("mail", &list(&["c"]))];
    let one = named.sums(&snapshot(&[docs.clone(), mail.clone()]));
    assert_eq!(named.sums(&snapshot(&[mail.clone(), docs])).total, one.total);
    let turned = row("docs", &list(&["b", "a", "b"]));
    assert_eq!(named.sums(&snapshot(&[turned, mail])).total, one.total);
    let others = [row("docs", &list(&["a", "c"])), row("mail", &list(&["b"]))];
    assert_ne!(named.sums(&snapshot(&others)).total, one.total);
    let nothing = named.sums(&snapshot(&[row("docs", &list(&[]))]));
    assert_eq!(nothing.total, Sum::default());
}

/// S24: a rejected tool has no name; its loss notifies the others, once.
#[tokio::test]
async fn s24_a_rejected_tool_has_no_name() {
    let named = KnownNames::default();
    let own = list(&["docs_greet", "wave"]);
    let rows = snapshot(&[row("rival", &own), row("docs", &list(&["greet"]))]);
    let mut news = named.news();
    news.borrow_and_update();
    let before = named.sums(&rows);
    let live = named.live(|| rows.clone()).await.unwrap();
    assert!(live.names.look_alike("other", "rival_wave").is_some());
    named.rejects("rival", &own, rejected(&[]));
    assert!(!news.has_changed().unwrap(), "nothing was rejected");
    named.rejects("rival", &own, rejected(&["wave"]));
    assert!(news.has_changed().unwrap());
    news.borrow_and_update();
    named.rejects("rival", &own, rejected(&["wave"]));
    assert!(!news.has_changed().unwrap(), "that was known");
    let after = named.sums(&rows);
    assert_ne!(after.beside("docs", 0), before.beside("docs", 0));
    assert_eq!(after.beside("rival", 0), before.beside("rival", 0));
    let live = named.live(|| rows.clone()).await.unwrap();
    assert_eq!(live.names.look_alike("other", "rival_wave"), None);
    assert!(live.names.look_alike("other", "rival_docs_greet").is_some());
    // A human may reverse the decision.
    named.rejects("rival", &own, rejected(&[]));
    assert_eq!(named.sums(&rows).beside("docs", 0), before.beside("docs", 0));
    assert!(news.has_changed().unwrap());
}

/// S24: the names of the catalog are read once for each number of it.
#[tokio::test]
async fn s24_the_catalog_is_read_once_for_each_number() {
    let named = KnownNames::default();
    let reads = AtomicU64::new(0);
    let mut news = named.news();
    for (number, count) in [(1, 1), (1, 1), (2, 2)] {
        let read = async {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(vec![("mail".to_owned(), "send".to_owned())])
        };
        let names = named.catalog(number, read).await.unwrap();
        assert!(names.look_alike("docs", "mail_send").is_some());
        assert_eq!(reads.load(Ordering::Relaxed), count);
        let is_other = named.number() != Some(number);
        news.borrow_and_update();
        named.note_number(number);
        assert_eq!(news.has_changed().unwrap(), is_other);
    }
}
