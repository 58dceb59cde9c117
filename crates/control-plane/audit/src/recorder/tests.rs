//! Tests of the record, its queue and its file.

mod spooling;

use std::{
    borrow::Cow,
    collections::BTreeMap,
    os::unix::fs::PermissionsExt,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize},
        mpsc::{SyncSender, sync_channel},
    },
};

use narthex_model::{Alias, CallErrorKind};
use serde_json::Value;

use super::*;
use crate::{Excerpt, TOOL, line_hash, spool};

fn call(tool: &str) -> AuditRecord {
    AuditRecord {
        user: None,
        workspace: WorkspaceId::default(),
        run: RunId::new([7; RunId::BYTES]),
        session: None,
        endpoint: None,
        server: Some(Alias::new("git").unwrap()),
        method: Cow::Borrowed("tools/call"),
        item: Some((TOOL, tool.into())),
        granted_via: Box::default(),
        refused_by: None,
        rule: None,
        rounds: 0,
    }
}

/// Every line of every file in a folder, oldest file first; each must be whole.
fn all_lines(folder: &Path) -> Vec<Value> {
    let mut paths = spool::asides(folder).unwrap();
    paths.extend(spool::current_paths(folder));
    let texts = paths.iter().map(|path| fs_err::read_to_string(path).unwrap());
    let texts: Vec<String> = texts.collect();
    assert!(texts.iter().all(|text| text.is_empty() || text.ends_with('\n')));
    texts.iter().flat_map(|text| text.lines()).map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// Returns the lines of actions.
fn lines(folder: &Path) -> Vec<Value> {
    let mut lines = all_lines(folder);
    lines.retain(|line| line["kind"].is_string() && line["kind"] != "audit.chain.opened");
    lines
}

/// A record that writes to this disk, with room for `queue` events.
fn over(sink: impl Sink + 'static, queue: usize) -> Audit {
    let settings = AuditSettings { queue, ..Default::default() };
    let state = State::new(&settings, Arc::default());
    Audit::start(sink, state, None, Standing::default()).unwrap()
}

fn outcomes(folder: &Path) -> Vec<String> {
    lines(folder).iter().map(|line| line["outcome"].as_str().unwrap().to_owned()).collect()
}

/// A disk that can be broken and repaired, and writes little at a time.
#[derive(Clone, Default)]
struct Disk {
    text: Arc<Mutex<Vec<u8>>>,
    is_broken: Arc<AtomicBool>,
    syncs: Arc<AtomicUsize>,
}

impl Sink for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = self.text.lock().unwrap();
        // Breaks in the middle of a line, as a full disk does.
        if self.is_broken.load(Ordering::SeqCst) && text.len() >= 70 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let count = bytes.len().min(7);
        text.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn at_line_end(&mut self, _: &mut dyn FnMut() -> Vec<u8>) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// S32.
#[tokio::test]
async fn every_outcome_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    let mut expected = vec![
        (Outcome::Ok, "ok"),
        (Outcome::ToolError, "tool_error"),
        (Outcome::RpcError(-32602), "rpc_error"),
        (Outcome::Denied, "denied"),
        (Outcome::Cancelled, "cancelled"),
    ];
    expected.extend(CallErrorKind::ALL.map(|kind| (Outcome::Failed(kind), kind.as_str())));
    for (outcome, _) in &expected {
        audit.reserve(call("status")).unwrap().commit(*outcome);
    }
    drop(audit.reserve(call("status")).unwrap());
    expected.push((Outcome::Abandoned, "abandoned"));
    audit.close().await;
    let names: Vec<&str> = expected.iter().map(|(_, name)| *name).collect();
    assert_eq!(outcomes(folder.path()), names);
    assert_eq!(expected.len(), Outcome::COUNT);
    for (place, (outcome, name)) in expected.iter().enumerate() {
        assert_eq!(outcome.as_str(), *name);
        let is_alone = |other: &(Outcome, &str)| other.0.index() != outcome.index();
        assert!(expected.iter().enumerate().all(|(at, other)| at == place || is_alone(other)));
    }
    assert_eq!(lines(folder.path())[2]["details"]["code"], -32602);
}

/// X-M62, A-11: the duration of a call in the audit runs from its reservation to its outcome.
#[tokio::test(start_paused = true)]
async fn a_recorded_line_has_its_duration_and_bounded_texts() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    let mut record = call("status");
    record.session = Some("node-1".into());
    record.endpoint = Some(Alias::new("git").unwrap());
    let run = record.run.to_text();
    let first = audit.reserve(record).unwrap();
    tokio::time::advance(Duration::from_micros(1_500)).await;
    assert_eq!(first.elapsed(), Duration::from_micros(1_500));
    first.commit(Outcome::Ok);
    let mut slot = audit.reserve(call(&"ä\"\n".repeat(1_000))).unwrap();
    slot.update(|record| {
        record.method = Cow::Owned("x".repeat(1_000));
        record.server = None;
    });
    slot.commit(Outcome::Ok);
    audit.close().await;

    let lines = lines(folder.path());
    let mut line = lines[0].clone();
    let members = line.as_object_mut().unwrap();
    let time = members.remove("time").unwrap();
    assert!(time.as_str().is_some_and(|time| time.len() == 24 && time.ends_with('Z')));
    assert_eq!(members.remove("duration_ms").unwrap(), 1.5);
    let hash = members.remove("hash").unwrap();
    let prev = members.remove("prev").unwrap();
    let writer = members.remove("writer").unwrap();
    let opened = &all_lines(folder.path())[1];
    assert_eq!((&opened["hash"], &opened["writer"]), (&prev, &writer));
    assert_eq!(line_hash(&lines[0].to_string()).unwrap().0, hash.as_str().unwrap());
    let expected = serde_json::json!({
        "v": 2, "workspace": "default", "seq": 2, "kind": "session.mcp.tool_called",
        "actor": {"kind": "run", "id": run}, "run": run, "session": "node-1", "server": "git",
        "resource": {"kind": "tool", "id": "status"}, "tool": "status", "outcome": "ok",
        "details": {"endpoint": "git", "method": "tools/call"},
    });
    assert_eq!(line, expected);
    assert_eq!(lines[1]["resource"]["id"].as_str().unwrap().chars().count(), 256);
    assert_eq!(lines[1]["details"]["method"].as_str().unwrap().len(), 256);
    assert_eq!(lines[1].get("server"), None);
    let mode = fs_err::metadata(folder.path().join("audit.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// D25: a call without room for its record is refused.
#[tokio::test]
async fn d25_a_full_queue_refuses_calls() {
    let audit = over(Disk::default(), 2);
    let slots = [audit.reserve(call("a")).unwrap(), audit.reserve(call("b")).unwrap()];
    assert_eq!(audit.reserve(call("c")).unwrap_err(), AuditFull::Full);
    assert_eq!(audit.free(), Some(0));
    drop(slots);
    audit.flush().await;
    assert_eq!(audit.free(), Some(2));
    audit.reserve(call("c")).unwrap().commit(Outcome::Ok);
    audit.close().await;
    assert_eq!(audit.reserve(call("d")).unwrap_err(), AuditFull::Closed);
}

/// D25: a disk that fails refuses calls; accepted ones are written once it works again.
#[tokio::test]
async fn d25_a_failing_disk_refuses_calls_until_it_works() {
    let disk = Disk::default();
    let audit = over(disk.clone(), 100);
    let open = audit.reserve(call("open")).unwrap();
    // Before, since the writer may fail at the first that ends.
    let accepted: Vec<_> = (0..3).map(|_| audit.reserve(call("tool")).unwrap()).collect();
    disk.is_broken.store(true, Ordering::SeqCst);
    accepted.into_iter().for_each(|slot| slot.commit(Outcome::Ok));
    audit.flush().await;
    assert_eq!(audit.reserve(call("tool")).unwrap_err(), AuditFull::Failed);
    open.commit(Outcome::Ok);
    audit.flush().await;
    assert_eq!(audit.reserve(call("tool")).unwrap_err(), AuditFull::Failed);
    disk.is_broken.store(false, Ordering::SeqCst);
    audit.flush().await;
    audit.reserve(call("last")).unwrap().commit(Outcome::Ok);
    audit.close().await;
    assert_eq!(audit.free(), Some(100));
    let text = String::from_utf8(disk.text.lock().unwrap().clone()).unwrap();
    let names: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let names: Vec<Option<&str>> = names.iter().map(|l| l["tool"].as_str()).collect();
    let names: Vec<&str> = names.into_iter().flatten().collect();
    assert_eq!(names, ["tool", "tool", "tool", "open", "last"]);
    assert!(disk.syncs.load(Ordering::SeqCst) > 0);
}

/// A writer that dies ends the calls with it, and blocks no caller.
#[tokio::test]
async fn d25_a_dead_writer_refuses_calls() {
    struct Deadly;
    impl Sink for Deadly {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("a bug in the writer")
        }
        fn at_line_end(&mut self, _: &mut dyn FnMut() -> Vec<u8>) -> io::Result<()> {
            Ok(())
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let audit = over(Deadly, 10);
    let open = audit.reserve(call("a")).unwrap();
    audit.reserve(call("b")).unwrap().commit(Outcome::Ok);
    audit.flush().await;
    assert_eq!(audit.reserve(call("c")).unwrap_err(), AuditFull::Failed);
    open.commit(Outcome::Ok);
    audit.close().await;
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs_err::write(&path, "").unwrap();
    let error = Audit::open(&path.join("audit"), &AuditSettings::default()).unwrap_err();
    assert!(error.to_string().contains("file/audit"), "{error}");
}

/// The last handle takes the writer with it, after it has written.
#[test]
fn the_writer_ends_with_the_last_handle() {
    struct Last(Disk, SyncSender<()>);
    impl Sink for Last {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.write(bytes)
        }
        fn at_line_end(&mut self, _: &mut dyn FnMut() -> Vec<u8>) -> io::Result<()> {
            Ok(())
        }
        fn sync(&mut self) -> io::Result<()> {
            self.0.sync()
        }
    }
    impl Drop for Last {
        fn drop(&mut self) {
            self.1.send(()).unwrap();
        }
    }
    let (ended, has_ended) = sync_channel(1);
    let disk = Disk::default();
    let audit = over(Last(disk.clone(), ended), 10);
    let slot = audit.reserve(call("a")).unwrap();
    drop(audit);
    drop(slot);
    has_ended.recv().unwrap();
    assert!(disk.text.lock().unwrap().ends_with(b"}\n"));
    assert_eq!(disk.syncs.load(Ordering::SeqCst), 1);
}

#[test]
fn a_disabled_audit_accepts_every_call() {
    let audit = Audit::disabled();
    assert_eq!(audit.free(), None);
    audit.reserve(call("a")).unwrap().commit(Outcome::Ok);
    drop(audit.reserve(call("a")).unwrap());
}

/// D25, S32: many callers at once: each record is written once, whole, with its own outcome.
#[tokio::test]
async fn no_record_is_lost_or_torn_under_load() {
    const THREADS: u64 = 64;
    const CALLS: u64 = 150;
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { queue: 200, rotate_bytes: 100_000, ..Default::default() };
    let audit = Audit::open(folder.path(), &settings).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let audit = audit.clone();
            let numbers = thread * CALLS..(thread + 1) * CALLS;
            scope.spawn(move || numbers.for_each(|number| busy_call(&audit, number)));
        }
    });
    audit.close().await;
    assert_eq!(audit.free(), Some(200));
    let mut seen = BTreeMap::new();
    for line in lines(folder.path()) {
        let number: u64 = line["tool"].as_str().unwrap().parse().unwrap();
        let outcome = line["outcome"].as_str().unwrap().to_owned();
        assert_eq!(seen.insert(number, outcome), None);
    }
    let expected: BTreeMap<u64, String> =
        (0..THREADS * CALLS).map(|n| (n, fate(n).as_str().to_owned())).collect();
    assert_eq!(seen, expected);
}

/// The outcome of a call of the load test.
fn fate(number: u64) -> Outcome {
    // A multiplicative hash: fixed, and without a pattern across threads.
    match (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) % 3 {
        0 => Outcome::Ok,
        1 => Outcome::ToolError,
        _ => Outcome::Abandoned,
    }
}

fn busy_call(audit: &Audit, number: u64) {
    let slot = loop {
        match audit.reserve(call(&number.to_string())) {
            Ok(slot) => break slot,
            Err(AuditFull::Full) => std::thread::yield_now(),
            Err(other) => panic!("{other}"),
        }
    };
    match fate(number) {
        Outcome::Abandoned => drop(slot),
        outcome => slot.commit(outcome),
    }
}

/// X-M64: the contents of a call are written with it, in its chain. Their room comes back when they
/// are on the disk; contents without room are recorded without their text.
#[tokio::test]
async fn x_m64_contents_of_a_call_are_recorded_within_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    let excerpt = |text: &str| Excerpt::new(text.to_owned(), text.len(), false);
    let mut slot = audit.reserve(call("a")).unwrap();
    slot.keep_request(excerpt(r#"{"name":"a"}"#));
    slot.keep_answer(excerpt("{}"));
    let free = || audit.queue.as_ref().unwrap().state.keeping.free();
    let room = free().load(Ordering::Relaxed) + 14;
    slot.commit(Outcome::Ok);
    // The switch was turned off in the middle.
    let mut slot = audit.reserve(call("b")).unwrap();
    slot.keep_request(excerpt("{}"));
    slot.forget_contents();
    slot.commit(Outcome::Ok);
    audit.flush().await;
    assert_eq!(free().load(Ordering::Relaxed), room);
    // There is room for no more than this.
    free().store(3, Ordering::Relaxed);
    let mut slot = audit.reserve(call("c")).unwrap();
    slot.keep_request(excerpt("1234"));
    slot.keep_answer(excerpt("[1]"));
    slot.commit(Outcome::Ok);
    audit.flush().await;
    assert_eq!(free().load(Ordering::Relaxed), 3);
    let written = lines(folder.path());
    let contents = |line: &Value| line["details"].get("contents").cloned();
    let both = serde_json::json!({
        "request": { "text": r#"{"name":"a"}"#, "bytes": 12 },
        "answer": { "text": "{}", "bytes": 2 },
    });
    assert_eq!(contents(&written[0]), Some(both));
    assert_eq!(contents(&written[1]), None);
    let none = serde_json::json!({
        "request": { "text": "", "bytes": 4, "truncated": true },
        "answer": { "text": "[1]", "bytes": 3 },
    });
    assert_eq!(contents(&written[2]), Some(none));
}

/// X-M64: a switch that was taken before follows a later setting, both ways, and unused switches
/// are removed.
#[tokio::test]
async fn x_m64_a_changed_setting_updates_content_switches_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    let [here, there] = ["here", "there"].map(|id| WorkspaceId::new(id).unwrap());
    let (mine, other) = (audit.contents_switch(&here), audit.contents_switch(&there));
    assert!(!mine.is_on());
    audit.keep_contents_of(&[here.clone()].into());
    assert!(mine.is_on() && !other.is_on() && audit.contents_switch(&here).is_on());
    audit.keep_contents_of(&[there].into());
    assert!(!mine.is_on() && other.is_on());
    drop(mine);
    audit.keep_contents_of(&[here.clone()].into());
    assert!(audit.contents_switch(&here).is_on() && !other.is_on());
    assert!(!Audit::disabled().contents_switch(&here).is_on());
}
