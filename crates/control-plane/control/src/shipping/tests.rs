//! Tests of moves of audit records into the store.

use narthex_audit::{
    Actor, ActorKind, Audit, AuditEvent, AuditFull, AuditSettings, DeclaredChain, Verifier,
};
use narthex_model::WorkspaceId;
use narthex_store::Store;
use serde_json::json;

use super::{ShipError, Shipper, row_of};

fn event(number: u64) -> AuditEvent<'static> {
    let event = AuditEvent::new("test.happened", Actor::system()).on("number", number.to_string());
    event.in_workspace(&WorkspaceId::default())
}

async fn all_of(store: &Store) -> Vec<String> {
    let mut resources = Vec::new();
    for chain in store.audit().chains("default").await.unwrap() {
        let rows = store.audit().of_chain(&chain, (0, u64::MAX >> 1), 10_000).await.unwrap();
        let mut verifier = Verifier::new();
        let declared = DeclaredChain {
            workspace: chain.workspace,
            writer: chain.writer,
            base_seq: 0,
            base_hash: String::new(),
            head_seq: chain.head_seq,
            head_hash: chain.head_hash,
            is_vouched: None,
        };
        verifier.line(&json!({ "chain": declared }).to_string());
        rows.iter().for_each(|row| verifier.line(&row.document));
        verifier.line(&json!({ "end": { "events": rows.len() } }).to_string());
        let report = verifier.finish();
        let is_whole = report.broken.iter().all(|one| one.to_string().contains("names is missing"));
        assert!(is_whole, "{:?}", report.broken);
        let told = rows.into_iter().filter(|row| row.kind == "test.happened");
        resources.extend(told.map(|row| row.resource));
    }
    resources
}

async fn move_all(shipper: &mut Shipper) {
    while shipper.step().await.unwrap() {}
}

/// D25: while the store is unavailable, events wait on the disk. When the disk space is used up,
/// actions are refused. When the store is back, all events are moved once, and actions are accepted
/// again.
#[tokio::test]
async fn d25_events_wait_on_disk_while_the_store_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("store.db");
    let settings = AuditSettings { rotate_bytes: 2_000, spool_bytes: 20_000, ..Default::default() };
    let audit = Audit::open(&dir.path().join("audit"), &settings).unwrap();
    let store = Store::open(&file).await.unwrap();
    let mut shipper = Shipper::new(&audit, Some(&store), None).unwrap();
    let mut done = 0;
    for _ in 0..3 {
        audit.note(event(done)).unwrap();
        done += 1;
    }
    audit.flush().await;
    move_all(&mut shipper).await;
    assert_eq!(all_of(&store).await, ["0", "1", "2"]);
    store.close().await;
    let full = loop {
        match audit.note(event(done)) {
            Ok(()) => done += 1,
            Err(full) => break full,
        }
        audit.flush().await;
        let failed = shipper.step().await.unwrap_err();
        assert!(matches!(failed, ShipError::Store(_)), "{failed}");
    };
    assert_eq!(full, AuditFull::SpoolFull);
    assert!(done > 10, "{done}");
    let store = Store::open(&file).await.unwrap();
    // A second process, which does not know how many events the first has moved.
    let mut shipper = Shipper::new(&audit, Some(&store), None).unwrap();
    move_all(&mut shipper).await;
    audit.note(event(done)).unwrap();
    audit.flush().await;
    move_all(&mut shipper).await;
    let expected: Vec<_> = (0..=done).map(|number| number.to_string()).collect();
    assert_eq!(all_of(&store).await, expected);
    audit.close().await;
}

/// D25: a client's name may have a zero byte, which no store accepts. Its event is still moved, and
/// the document stays as it was written.
#[tokio::test]
async fn an_event_with_a_zero_byte_in_a_name_is_moved_with_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let audit = Audit::open(&dir.path().join("audit"), &AuditSettings::default()).unwrap();
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    let mut shipper = Shipper::new(&audit, Some(&store), None).unwrap();
    let actor = Actor::new(ActorKind::Run, "r\0n");
    let named = AuditEvent::new("test.happened", actor).on("tool", "a\0b").of_run("r\0n");
    audit.note(named.in_workspace(&WorkspaceId::default())).unwrap();
    audit.note(event(1)).unwrap();
    audit.close().await;
    move_all(&mut shipper).await;
    assert_eq!(all_of(&store).await, ["a\u{fffd}b", "1"]);
}

/// S32: if the number of a line was raised, the lines after it are still moved.
#[tokio::test]
async fn s32_lines_after_a_changed_number_are_still_moved() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("audit");
    let audit = Audit::open(&folder, &AuditSettings::default()).unwrap();
    (0..4).for_each(|number| audit.note(event(number)).unwrap());
    audit.close().await;
    let mut changed = 0;
    for entry in fs_err::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = fs_err::read_to_string(&path) else { continue };
        let other = |line: &str| match line.contains(r#""id":"1","#) {
            true => line.replace(r#""seq":"#, r#""seq":9"#),
            false => line.to_owned(),
        };
        let lines: Vec<_> = text.lines().map(|line| other(line) + "\n").collect();
        changed += usize::from(lines.concat() != text);
        fs_err::write(&path, lines.concat()).unwrap();
    }
    assert_eq!(changed, 1, "one of the files has it");
    let audit = Audit::open(&folder, &AuditSettings::default()).unwrap();
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    let mut shipper = Shipper::new(&audit, Some(&store), None).unwrap();
    move_all(&mut shipper).await;
    let mut moved = Vec::new();
    for chain in store.audit().chains("default").await.unwrap() {
        let rows = store.audit().of_chain(&chain, (0, u64::MAX >> 1), 100).await.unwrap();
        let told = rows.into_iter().filter(|row| row.kind == "test.happened");
        moved.extend(told.map(|row| row.resource));
    }
    assert_eq!(moved, ["0", "2", "3"]);
}

/// D25: two processes that move the same files move every event once.
#[tokio::test]
async fn several_movers_move_every_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let settings = AuditSettings { rotate_bytes: 2_000, ..Default::default() };
    let audit = Audit::open(&dir.path().join("audit"), &settings).unwrap();
    let store = Store::open(&dir.path().join("store.db")).await.unwrap();
    for number in 0..200 {
        audit.note(event(number)).unwrap();
        if number % 10 == 0 {
            audit.flush().await;
        }
    }
    audit.close().await;
    let mover = async || {
        let mut shipper = Shipper::new(&audit, Some(&store), None).unwrap();
        loop {
            match shipper.step().await {
                Ok(true) | Err(ShipError::Contended) => {}
                Ok(false) => return,
                Err(error) => panic!("{error}"),
            }
        }
    };
    tokio::join!(mover(), mover(), mover());
    let expected: Vec<_> = (0..200).map(|number| number.to_string()).collect();
    assert_eq!(all_of(&store).await, expected);
}

#[test]
fn a_line_of_the_spool_becomes_a_row_with_its_members() {
    let line = json!({
        "actor": { "id": "u\u{0}1", "type": "user" }, "details": { "kind": "other" },
        "hash": "h", "kind": "test.happened", "prev": "p", "resource": { "id": "a\"b" },
        "run": "r", "seq": 7, "time": "2026-11-23T10:00:00.250Z", "workspace": "w", "writer": "x",
    });
    let (row, hash) = row_of(&line.to_string()).expect("it is one");
    assert_eq!(hash, "h");
    assert_eq!((row.kind.as_str(), row.actor.as_str()), ("test.happened", "u\u{fffd}1"));
    assert_eq!((row.resource.as_str(), row.run.as_str()), ("a\"b", "r"));
    assert_eq!((row.workspace.as_str(), row.writer.as_str(), row.seq), ("w", "x", 7));
    assert_eq!(narthex_model::Timestamp::new(row.happened_at).to_string(), line["time"]);
    assert_eq!(row.document, line.to_string());
    // Optional members may be missing; members that chain lines may not.
    for (member, is_needed) in
        [("resource", false), ("run", false), ("workspace", false), ("prev", true), ("seq", true)]
    {
        let mut shorter = line.clone();
        shorter.as_object_mut().expect("an object").remove(member);
        assert_eq!(row_of(&shorter.to_string()).is_none(), is_needed, "{member}");
    }
    let sequence: Vec<_> = line.as_object().expect("an object").values().collect();
    assert!(row_of(&json!(sequence).to_string()).is_none());
    assert!(row_of("").is_none());
}
