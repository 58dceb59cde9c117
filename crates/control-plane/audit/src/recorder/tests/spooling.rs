//! Tests of the files: rotated, read in order, and continued after a crash.

use serde_json::json;

use super::*;
use crate::{Actor, ActorKind, Head, Verifier};

fn change(name: &str) -> AuditEvent<'static> {
    let actor = Actor::new(ActorKind::LocalAdmin, "admin");
    let event = AuditEvent::new("workspace.secret.set", actor).on("secret", name.to_owned());
    event.in_workspace(&WorkspaceId::default())
}

/// Closes a writer and waits until it has let go of its place in the folder.
async fn ended(audit: Audit) {
    let state = audit.queue.as_ref().unwrap().state.clone();
    audit.close().await;
    drop(audit);
    while Arc::strong_count(&state) > 1 {
        tokio::task::yield_now().await;
    }
}

/// Reads all there is, as if it were moved into a store.
fn read_all(reader: &mut SpoolReader) -> Vec<Value> {
    let mut lines = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        lines.extend(batch.lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()));
        reader.moved(&batch);
    }
    lines
}

/// Checks that the lines of the spool's writers are one unbroken chain each, as a store would know
/// them.
fn verify(lines: &[Value]) {
    let mut chains: BTreeMap<(String, String), Vec<&Value>> = BTreeMap::new();
    for line in lines {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        chains.entry((text("workspace"), text("writer"))).or_default().push(line);
    }
    let mut verifier = Verifier::new();
    for ((workspace, writer), lines) in &chains {
        let last = lines.last().unwrap();
        let chain = json!({"chain": {"workspace": workspace, "writer": writer, "base_seq": 0,
            "base_hash": "", "head_seq": last["seq"], "head_hash": last["hash"]}});
        verifier.line(&chain.to_string());
        lines.iter().for_each(|line| verifier.line(&line.to_string()));
    }
    verifier.line(&json!({"end": {"events": lines.len()}}).to_string());
    let report = verifier.finish();
    assert!(report.is_whole(), "{:?}", report.broken);
}

fn secrets(lines: &[Value]) -> Vec<(String, String)> {
    let text = |line: &Value, pointer: &str| {
        line.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let changes = lines.iter().filter(|line| line["kind"] == "workspace.secret.set");
    changes.map(|line| (text(line, "/resource/id"), text(line, "/outcome"))).collect()
}

#[tokio::test]
async fn long_spool_files_are_rotated_and_removed_after_their_events_are_moved() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { rotate_bytes: 1_000, ..Default::default() };
    let audit = Audit::open(folder.path(), &settings).unwrap();
    for number in 0..60 {
        audit.reserve(call(&format!("tool-{number}"))).unwrap().commit(Outcome::Ok);
        audit.flush().await;
    }
    assert!(spool::asides(folder.path()).unwrap().len() > 20);
    let (waiting, _) = audit.waiting().unwrap();
    assert!(waiting > 10_000, "{waiting}");
    let mut reader = audit.reader().unwrap();
    let lines = read_all(&mut reader);
    verify(&lines);
    let tools: Vec<_> = lines.iter().filter_map(|line| line["tool"].as_str()).collect();
    assert_eq!(tools, (0..60).map(|number| format!("tool-{number}")).collect::<Vec<_>>());
    assert_eq!(spool::asides(folder.path()).unwrap(), Vec::<PathBuf>::new());
    assert_eq!(audit.waiting().unwrap(), (0, Duration::ZERO));
    assert!(read_all(&mut reader).is_empty());
    audit.reserve(call("last")).unwrap().commit(Outcome::Ok);
    audit.close().await;
    assert!(audit.waiting().unwrap().0 > 0);
    assert_eq!(read_all(&mut reader).len(), 1);
}

/// D25: when too much waits for the store, calls are refused; when it was moved, calls are accepted
/// again.
#[tokio::test]
async fn d25_a_full_spool_refuses_calls_until_its_events_are_moved() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { rotate_bytes: 1_000, spool_bytes: 5_000, ..Default::default() };
    let audit = Audit::open(folder.path(), &settings).unwrap();
    let mut made = 0;
    let full = loop {
        match audit.reserve(call("tool")) {
            Ok(slot) => slot.commit(Outcome::Ok),
            Err(full) => break full,
        }
        made += 1;
        audit.flush().await;
    };
    assert_eq!((full, full.kind()), (AuditFull::SpoolFull, ErrorKind::Exhausted));
    assert_eq!(audit.begin(change("A")).await.unwrap_err(), AuditFull::SpoolFull);
    let lines = read_all(&mut audit.reader().unwrap());
    assert_eq!(lines.iter().filter(|line| line["tool"] == "tool").count(), made);
    audit.reserve(call("tool")).unwrap().commit(Outcome::Ok);
    audit.close().await;
}

/// S32: the next writer continues the chains of the one before, also if that was killed in the
/// middle of a line. A change that was under way then is in the record.
#[tokio::test]
async fn a_change_in_progress_when_its_process_is_killed_is_recorded_once() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings::default();
    let first = Audit::open(folder.path(), &settings).unwrap();
    first.begin(change("DONE")).await.unwrap().done().await;
    drop(first.begin(change("FAILED")).await.unwrap());
    let open = first.begin(change("OPEN")).await.unwrap();
    // The file as a killed process leaves it: no later line is written.
    let killed = tempfile::tempdir().unwrap();
    let text = fs_err::read(folder.path().join("audit.jsonl")).unwrap();
    let torn = [&text[..], b"{\"actor\":{\"id\":\"adm"].concat();
    fs_err::write(killed.path().join("audit.jsonl"), torn).unwrap();
    open.done().await;
    first.close().await;
    let ends = |names: &[(&str, &str)]| {
        names.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>()
    };
    let lines = read_all(&mut first.reader().unwrap());
    verify(&lines);
    assert_eq!(secrets(&lines), ends(&[("DONE", "ok"), ("FAILED", "failed"), ("OPEN", "ok")]));

    for _ in 0..3 {
        let next = Audit::open(killed.path(), &settings).unwrap();
        next.reserve(call("tool")).unwrap().commit(Outcome::Ok);
        ended(next).await;
    }
    let next = Audit::open(killed.path(), &settings).unwrap();
    let lines = read_all(&mut next.reader().unwrap());
    verify(&lines);
    let expected = ends(&[("DONE", "ok"), ("FAILED", "failed"), ("OPEN", "interrupted")]);
    assert_eq!(secrets(&lines), expected);
    let opened: Vec<_> = lines.iter().filter(|line| line["kind"] == "audit.chain.opened").collect();
    assert_eq!(opened.len(), 4);
    for pair in opened.windows(2) {
        assert_eq!(pair[1]["details"]["after_writer"], pair[0]["writer"]);
    }
}

/// D25: a process may be killed at any byte that it writes: the next one finds a chain, nothing of
/// it is there twice, and all that was on the disk before is there.
#[tokio::test]
async fn the_next_writer_continues_a_spool_that_was_cut_at_any_byte() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings::default();
    let audit = Audit::open(folder.path(), &settings).unwrap();
    let mut acknowledged = Vec::new();
    for name in ["A", "B", "C"] {
        audit.begin(change(name)).await.unwrap().done().await;
        let length = fs_err::metadata(folder.path().join("audit.jsonl")).unwrap().len();
        acknowledged.push((length, name));
    }
    let text = fs_err::read(folder.path().join("audit.jsonl")).unwrap();
    let header = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let ends = text.iter().zip(1..).filter(|(byte, _)| **byte == b'\n').map(|(_, end)| end);
    let near_ends = ends.flat_map(|end| [end - 1, end, end + 1]);
    for end in (header..text.len()).step_by(131).chain(near_ends) {
        if !(header..=text.len()).contains(&end) {
            continue;
        }
        let killed = tempfile::tempdir().unwrap();
        fs_err::write(killed.path().join("audit.jsonl"), &text[..end]).unwrap();
        let next = Audit::open(killed.path(), &settings).unwrap();
        next.close().await;
        let lines = read_all(&mut next.reader().unwrap());
        verify(&lines);
        let mut names: Vec<_> = secrets(&lines).into_iter().map(|(name, _)| name).collect();
        let there = names.len();
        names.dedup();
        assert_eq!(there, names.len(), "cut at {end}");
        let sure = acknowledged.iter().filter(|(length, _)| *length <= end as u64);
        assert!(sure.into_iter().all(|(_, name)| names.iter().any(|n| n == name)), "cut at {end}");
    }
}

/// The record of a change under way survives that its file is rotated and moved.
#[tokio::test]
async fn a_change_in_progress_is_carried_over_to_the_newest_spool_file() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { rotate_bytes: 1_000, ..Default::default() };
    let audit = Audit::open(folder.path(), &settings).unwrap();
    let open = audit.begin(change("OPEN")).await.unwrap();
    for _ in 0..10 {
        audit.reserve(call("tool")).unwrap().commit(Outcome::Ok);
        audit.flush().await;
    }
    read_all(&mut audit.reader().unwrap());
    let killed = tempfile::tempdir().unwrap();
    let current = folder.path().join("audit.jsonl");
    fs_err::copy(current, killed.path().join("audit.jsonl")).unwrap();
    open.done().await;
    audit.close().await;
    let next = Audit::open(killed.path(), &settings).unwrap();
    next.close().await;
    let lines = read_all(&mut next.reader().unwrap());
    assert_eq!(secrets(&lines), [("OPEN".to_owned(), "interrupted".to_owned())]);
}

/// A writer's folder as it is when the process is killed now.
fn killed(folder: &Path) -> tempfile::TempDir {
    let killed = tempfile::tempdir().unwrap();
    let mut paths = spool::asides(folder).unwrap();
    paths.extend(spool::current_paths(folder));
    for path in paths {
        fs_err::copy(&path, killed.path().join(path.file_name().unwrap())).unwrap();
    }
    killed
}

/// D25: Thousands of changes under way at a rotation: the next file is read, and none is lost.
#[tokio::test]
async fn thousands_of_changes_in_progress_survive_a_rotation() {
    const CHANGES: usize = 3_500;
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { rotate_bytes: 100_000, ..Default::default() };
    let audit = Audit::open(folder.path(), &settings).unwrap();
    let events = (0..CHANGES).map(|number| change(&format!("SECRET_{number}")));
    let open = audit.begin_all(events.collect()).await.unwrap();
    let mut reader = audit.reader().unwrap();
    let rotations = || spool::asides(folder.path()).unwrap().len();
    assert!(rotations() > 0);
    // Much more of these than there is of news, and no file for each bit of news.
    for _ in 0..20 {
        audit.reserve(call("tool")).unwrap().commit(Outcome::Ok);
        audit.flush().await;
    }
    assert!(rotations() < 10, "{}", rotations());
    let text = fs_err::read_to_string(folder.path().join("audit.jsonl")).unwrap();
    assert!(text.lines().count() > CHANGES);
    assert!(text.lines().all(|line| line.len() < 10_000));
    let killed = killed(folder.path());

    let before = read_all(&mut reader);
    assert_eq!(before.iter().filter(|line| line["tool"] == "tool").count(), 20);
    Noted::all_done(open).await;
    audit.close().await;
    let mut lines = before;
    lines.extend(read_all(&mut reader));
    verify(&lines);
    assert_eq!(secrets(&lines).iter().filter(|(_, outcome)| outcome == "ok").count(), CHANGES);
    assert_eq!(audit.waiting().unwrap().0, 0);

    let next = Audit::open(killed.path(), &settings).unwrap();
    next.close().await;
    let lines = read_all(&mut next.reader().unwrap());
    verify(&lines);
    let ends = secrets(&lines);
    assert_eq!(ends.len(), CHANGES);
    assert!(ends.iter().all(|(_, outcome)| outcome == "interrupted"));
}

/// D25: files of version 2 had all that was under way in one line, which nothing bounded.
#[tokio::test]
async fn a_large_spool_header_of_version_2_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let events = (0..6_000).map(|number| (format!("aabbccddeeff.1.1.{number}"), number));
    let intents: BTreeMap<_, _> =
        events.map(|(id, number)| (id, json!(change(&format!("SECRET_{number}"))))).collect();
    let intents = json!(intents);
    let header = format!("{{\"spool\":2,\"heads\":{{}},\"intents\":{intents}}}");
    assert!(header.len() > 1_100_000, "{}", header.len());
    fs_err::write(folder.path().join("audit.jsonl"), format!("{header}\n")).unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    audit.reserve(call("tool")).unwrap().commit(Outcome::Ok);
    audit.close().await;
    let lines = read_all(&mut audit.reader().unwrap());
    verify(&lines);
    assert_eq!(lines.iter().filter(|line| line["tool"] == "tool").count(), 1);
    assert_eq!(secrets(&lines).len(), 6_000);
    assert_eq!(audit.waiting().unwrap(), (0, Duration::ZERO));
}

/// S32: the last moved events are known without the store, also by the next process.
#[tokio::test]
async fn the_last_moved_events_are_known_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings { rotate_bytes: 1_000, ..Default::default() };
    let moved = |reader: &SpoolReader| reader.files().unwrap().moved("default").unwrap();
    let first = Audit::open(folder.path(), &settings).unwrap();
    for name in ["A", "B", "C", "D"] {
        first.note(change(name)).unwrap();
        first.flush().await;
    }
    let mut reader = first.reader().unwrap();
    assert!(moved(&reader).is_empty());
    let batch = reader.next_batch().unwrap().unwrap();
    let at: Value = serde_json::from_str(batch.lines.last().unwrap()).unwrap();
    reader.moved(&batch);
    let head = |line: &Value| Head {
        writer: line["writer"].as_str().unwrap().to_owned(),
        seq: line["seq"].as_u64().unwrap(),
        hash: line["hash"].as_str().unwrap().to_owned(),
    };
    assert_eq!(moved(&reader), [head(&at)], "and not what waits");
    ended(first).await;
    let next = Audit::open(folder.path(), &settings).unwrap();
    let lines = read_all(&mut next.reader().unwrap());
    assert_eq!(secrets(&lines).len(), 4);
    ended(next).await;
    // This process writes no event of the workspace, and no file has one.
    let third = Audit::open(folder.path(), &settings).unwrap();
    let mut reader = third.reader().unwrap();
    assert!(moved(&reader).is_empty());
    assert!(read_all(&mut reader).is_empty());
    assert_eq!(moved(&reader), [head(lines.last().unwrap())]);
    assert!(reader.files().unwrap().moved("other").unwrap().is_empty());
    third.close().await;
}

/// D25: the lag is that of the oldest event that waits, also if another process has written it.
#[tokio::test]
async fn the_lag_outlives_a_restart() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let folder = tempfile::tempdir().unwrap();
    let settings = AuditSettings::default();
    let first = Audit::open(folder.path(), &settings).unwrap();
    let mut old = change("OLD");
    old.time = SystemTime::now() - DAY;
    first.note(old).unwrap();
    ended(first).await;
    // The chain's first event has the time of the first recorded event in it.
    let next = Audit::open(folder.path(), &settings).unwrap();
    let mut reader = next.reader().unwrap();
    let batch = reader.next_batch().unwrap().unwrap();
    assert!(next.waiting().unwrap().1 >= DAY, "{:?}", next.waiting());
    reader.moved(&batch);
    read_all(&mut reader);
    assert_eq!(next.waiting().unwrap(), (0, Duration::ZERO));
    next.close().await;
}

#[tokio::test]
async fn a_spool_file_of_an_earlier_version_is_preserved() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("audit.jsonl"), "{\"v\":1}\n{\"v\":1,\"ti").unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    audit.reserve(call("a")).unwrap().commit(Outcome::Ok);
    audit.close().await;
    verify(&read_all(&mut audit.reader().unwrap()));
    let names = fs_err::read_dir(folder.path()).unwrap();
    let names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("unchained-")).count(), 1, "{names:?}");
}

/// S32: refused callers are counted, in few records.
#[tokio::test]
async fn s32_refusals_of_the_unknown_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let audit = Audit::open(folder.path(), &AuditSettings::default()).unwrap();
    for number in 0..1_000 {
        let reason = if number % 4 == 0 { "host_or_origin" } else { "token" };
        audit.refused(Refused { door: "http", reason });
    }
    audit.close().await;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let lines = lines(folder.path());
    for line in &lines {
        assert_eq!((&line["kind"], &line["outcome"]), (&json!("auth.refused"), &json!("denied")));
        assert_eq!(line.get("workspace"), None);
        let reason = line["details"]["reason"].as_str().unwrap().to_owned();
        *counts.entry(reason).or_default() += line["details"]["count"].as_u64().unwrap();
    }
    assert_eq!(counts["token"], 750);
    assert_eq!(counts["host_or_origin"], 250);
    assert!(lines.len() < 100, "{}", lines.len());
}

/// A check beside the writer refuses what would keep the next one from opening, and makes nothing.
#[tokio::test]
async fn a_check_of_the_folder_refuses_as_its_opening_does() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, settings) = (dir.path().join("audit"), AuditSettings::default());
    Audit::check(&folder).unwrap();
    assert!(!folder.exists());
    let audit = Audit::open(&folder, &settings).unwrap();
    Audit::check(&folder).unwrap();
    let new = folder.join("audit.new");
    fs_err::create_dir(&new).unwrap();
    let refused = Audit::check(&folder).unwrap_err().to_string();
    ended(audit).await;
    assert_eq!(Audit::open(&folder, &settings).unwrap_err().to_string(), refused);
    fs_err::remove_dir(&new).unwrap();
    Audit::check(&folder).unwrap();
    ended(Audit::open(&folder, &settings).unwrap()).await;
}
