//! Any edit, removal, swap, insertion or cut of lines is found.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use narthex_audit::{
    Actor, ActorKind, AuditEvent, Chains, DeclaredChain, Fault, Head, Report, Verifier, canonical,
    kind, line_hash,
};
use narthex_model::{WorkspaceId, json::Node};
use proptest::{prelude::*, sample::Index};
use serde_json::{Value, json};

#[expect(clippy::excessive_precision, reason = "the precise number has two nearest texts")]
fn event(workspace: &str, number: u64) -> AuditEvent<'static> {
    let workspace = (!workspace.is_empty()).then(|| WorkspaceId::new(workspace).unwrap());
    let actor = Actor::new(ActorKind::LocalAdmin, "admin");
    let mut event =
        AuditEvent::new("workspace.secret.set", actor).on("secret", format!("S{number}"));
    event.workspace = workspace;
    event.time = SystemTime::UNIX_EPOCH + Duration::from_millis(number * 17);
    event.duration_us = Some(number * 1_001);
    // Two decimals of the same length are equally near to this number.
    event = event.with("near", 662_720_303_940_402.25);
    event.changing(["value"]).with("note", "quote \" and \u{7} and é").with("count", number)
}

/// The lines that a writer has written, by workspace, and where its chains end.
fn written(chains: &mut Chains, of: &[(&str, u64)]) -> BTreeMap<String, Vec<String>> {
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (workspace, number) in of {
        let mut out = Vec::new();
        let count = chains.append(&event(workspace, *number), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), count);
        lines.entry((*workspace).to_owned()).or_default().extend(text.lines().map(str::to_owned));
    }
    lines
}

fn declared(workspace: &str, head: &Head) -> DeclaredChain {
    DeclaredChain {
        workspace: workspace.to_owned(),
        writer: head.writer.clone(),
        base_seq: 0,
        base_hash: String::new(),
        head_seq: head.seq,
        head_hash: head.hash.clone(),
        is_vouched: None,
    }
}

fn verified(lines: &[String]) -> Report {
    let mut verifier = Verifier::new();
    lines.iter().for_each(|line| verifier.line(line));
    verifier.finish()
}

fn end(events: usize) -> String {
    json!({ "end": { "events": events } }).to_string()
}

/// The export of a chain with `events` events.
fn export(events: u64) -> Vec<String> {
    let mut chains = Chains::new("n.1".to_owned(), BTreeMap::new());
    let of: Vec<_> = (1..=events).map(|number| ("w", number)).collect();
    let mut lines = written(&mut chains, &of).remove("w").unwrap();
    let count = lines.len();
    let chain = json!({ "chain": declared("w", &chains.heads()["w"]) }).to_string();
    lines.insert(0, chain);
    lines.push(end(count));
    lines
}

fn first_fault(lines: &[String]) -> (u64, Fault) {
    let report = verified(lines);
    let first = report.broken.first().unwrap_or_else(|| panic!("nothing is found: {lines:#?}"));
    (first.line, first.fault.clone())
}

/// X-M63, X-M65: written lines are canonical, so that the hash is that of RFC 8785.
#[test]
fn x_m63_lines_are_canonical_and_have_every_member() {
    let lines = export(3);
    for line in &lines[1..lines.len() - 1] {
        let (made, stated) = line_hash(line).unwrap();
        assert_eq!(Some(made.as_str()), stated.as_deref());
        let Node::Object(mut members) = Node::parse(line.as_bytes()).unwrap() else { panic!() };
        members.retain(|(key, _)| key != "hash");
        let canonical = canonical(&Node::Object(members)).unwrap();
        let hash = format!(",\"hash\":\"{made}\"}}");
        assert_eq!(format!("{}{hash}", &canonical[..canonical.len() - 1]), *line);
        let value: Value = serde_json::from_str(line).unwrap();
        for member in ["actor", "workspace", "time", "kind", "outcome", "writer", "seq", "prev"] {
            assert!(value.get(member).is_some(), "{member} in {line}");
        }
    }
    assert!(verified(&lines).is_whole());
}

/// X-M63: lines that earlier versions wrote verify: their numbers, escapes, scripts and depth.
#[test]
fn x_m63_lines_of_earlier_versions_verify() {
    let text = include_str!("../data/chain.jsonl");
    let report = verified(&text.lines().map(str::to_owned).collect::<Vec<_>>());
    assert!(report.is_whole(), "{:?}", report.broken);
    assert_eq!(text.lines().count(), 18);
}

/// Each kind of damage is called by its name, at its place.
#[test]
fn s32_damage_is_named() {
    let whole = export(8);
    let at = |line: usize| u64::try_from(line + 1).unwrap();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = whole.clone();
        change(&mut lines);
        let events = lines.iter().filter(|line| line.contains("\"seq\"")).count();
        *lines.last_mut().unwrap() = end(events);
        first_fault(&lines)
    };
    let edited = with(&|lines| lines[4] = lines[4].replace("\"S3\"", "\"S4\""));
    assert_eq!(edited, (at(4), Fault::Edited));
    assert_eq!(with(&|lines| drop(lines.remove(4))), (at(4), Fault::Removed { count: 1 }));
    let several = with(&|lines| drop(lines.drain(3..6)));
    assert_eq!(several, (at(3), Fault::Removed { count: 3 }));
    assert_eq!(with(&|lines| lines.swap(4, 5)), (at(4), Fault::Reordered));
    assert_eq!(with(&|lines| lines.swap(3, 7)), (at(3), Fault::Reordered));
    let doubled = with(&|lines| lines.insert(5, lines[4].clone()));
    assert_eq!(doubled, (at(5), Fault::Doubled));
    let cut = with(&|lines| drop(lines.drain(8..10)));
    assert_eq!(cut, (at(7), Fault::TailCut { count: 2 }));
    let unreadable = with(&|lines| lines[4].truncate(20));
    assert_eq!(unreadable, (at(4), Fault::Unreadable));
    assert_eq!(with(&|lines| drop(lines.remove(0))), (at(0), Fault::Undeclared));
    let forged = with(&|lines| {
        lines[0] = lines[0].replace("\"workspace\"", "\"is_vouched\":false,\"workspace\"");
    });
    assert_eq!(forged, (at(0), Fault::Forged));
    let twice = with(&|lines| lines.insert(1, lines[0].clone()));
    assert_eq!(twice, (at(1), Fault::Doubled));
    let surplus = with(&|lines| {
        let last: Value = serde_json::from_str(&lines[6]).unwrap();
        let mut chain: Value = serde_json::from_str(&lines[0]).unwrap();
        chain["chain"]["head_seq"] = last["seq"].clone();
        chain["chain"]["head_hash"] = last["hash"].clone();
        lines[0] = chain.to_string();
    });
    assert_eq!(surplus, (at(7), Fault::Surplus));
    let mut lines = whole.clone();
    lines.pop();
    assert_eq!(first_fault(&lines), (at(lines.len()), Fault::TextCut));
    let mut lines = whole.clone();
    lines.push(end(whole.len() - 2));
    assert_eq!(first_fault(&lines), (at(lines.len()), Fault::TextCut), "a line after the end");
}

/// A line that is sound by itself, but is another than was written, breaks the following ones. So
/// it does where all lines after it are written anew.
#[test]
fn s32_a_rehashed_line_or_chain_is_found() {
    let whole = export(8);
    let mut chains = Chains::new("n.1".to_owned(), BTreeMap::new());
    let of: Vec<_> = (1..=8).map(|number| ("w", if number == 4 { 99 } else { number })).collect();
    let other = written(&mut chains, &of).remove("w").unwrap();
    let mut one = whole.clone();
    one[5].clone_from(&other[4]);
    assert_eq!(first_fault(&one), (7, Fault::Unlinked));
    let mut all = whole.clone();
    all.splice(1..10, other);
    assert_eq!(first_fault(&all), (10, Fault::Rewritten));
}

/// A later writer names the end of the chain before it; a cut there is found without the line that
/// declares the chain's end.
#[test]
fn s32_a_later_writer_names_the_end_of_the_previous_chain() {
    let mut first = Chains::new("n.1".to_owned(), BTreeMap::new());
    let mut of_first = written(&mut first, &[("w", 1), ("w", 2), ("", 3)]);
    let mut second = Chains::new("n.2".to_owned(), first.heads().clone());
    let mut of_second = written(&mut second, &[("w", 4), ("", 5)]);
    let exported = |first_head: Option<&Head>, before: Vec<String>, after: Vec<String>| {
        let mut lines = Vec::new();
        let count = before.len() + after.len();
        lines.extend(first_head.map(|head| json!({ "chain": declared("w", head) }).to_string()));
        lines.extend(before);
        lines.push(json!({ "chain": declared("w", &second.heads()["w"]) }).to_string());
        lines.extend(after);
        lines.push(end(count));
        verified(&lines)
    };
    let (before, after) = (of_first.remove("w").unwrap(), of_second.remove("w").unwrap());
    let report = exported(Some(&first.heads()["w"]), before.clone(), after.clone());
    assert!(report.is_whole() && report.events == 5, "{report:?}");
    let events: Vec<_> = report.chains.iter().map(|chain| chain.events).collect();
    assert_eq!((events, second.writer()), (vec![3, 2], "n.2"));
    // The end is cut, and its declaration was changed, too.
    let link: Value = serde_json::from_str(&before[1]).unwrap();
    let hash = link["hash"].as_str().unwrap().to_owned();
    let cut = Head { writer: "n.1".to_owned(), seq: 2, hash };
    let report = exported(Some(&cut), before[..2].to_vec(), after.clone());
    assert_eq!(report.broken[0].fault, Fault::PredecessorGone);
    let report = exported(None, Vec::new(), after.clone());
    assert_eq!(report.broken[0].fault, Fault::PredecessorGone);
    // The earlier chain has as many events, and its last one is another.
    let mut other = Chains::new("n.1".to_owned(), BTreeMap::new());
    let rewritten = written(&mut other, &[("w", 1), ("w", 9)]).remove("w").unwrap();
    let report = exported(Some(&other.heads()["w"]), rewritten, after.clone());
    assert_eq!(report.broken.len(), 1, "{report:?}");
    assert_eq!(
        (&*report.broken[0].writer, &report.broken[0].fault),
        ("n.2", &Fault::PredecessorGone)
    );
    // The earlier writer went on after the later one had begun.
    let further = written(&mut first, &[("w", 6)]).remove("w").unwrap();
    let longer = [before, further].concat();
    let report = exported(Some(&first.heads()["w"]), longer, after);
    assert!(report.is_whole(), "{report:?}");
}

/// Only the first line of a chain names the chain before it.
#[test]
fn s32_a_later_line_names_no_previous_chain() {
    let mut chains = Chains::new("n.1".to_owned(), BTreeMap::new());
    let mut out = Vec::new();
    let opened = AuditEvent::new(kind::CHAIN_OPENED, Actor::system());
    let opened = opened.with("after_writer", "n.0").with("after_seq", 3).with("after_hash", "x");
    assert_eq!(chains.append(&opened, &mut out), 2);
    let text = String::from_utf8(out).unwrap();
    let chain = json!({ "chain": declared("", &chains.heads()[""]) }).to_string();
    let mut lines = vec![chain];
    lines.extend(text.lines().map(str::to_owned));
    lines.push(end(2));
    assert!(verified(&lines).is_whole(), "{:?}", verified(&lines).broken);
}

/// S32: chains that are removed whole are noticed by the task that moved their events into the
/// store. So are chains that are cut back to an end that a holder of the key once vouched for.
#[test]
fn s32_removed_or_shortened_chains_are_found_from_the_moved_events() {
    let with = |lines: &[String], count: usize, known: Value| {
        let end = json!({ "end": { "events": count, "known": known } }).to_string();
        verified(&[lines, &[end]].concat())
    };
    let faults = |report: Report| -> Vec<_> {
        report.broken.into_iter().map(|one| (one.writer, one.seq, one.fault)).collect()
    };
    let lines = export(6);
    let count = lines.len() - 2;
    let lines = &lines[..=count];
    let head = |back: usize| {
        let link: Value = serde_json::from_str(&lines[count - back]).unwrap();
        json!({ "workspace": "w", "writer": "n.1", "seq": link["seq"], "hash": link["hash"] })
    };
    for known in [json!([]), json!([head(0)]), json!([head(3), head(1)])] {
        assert!(with(lines, count, known).is_whole());
    }
    let last = count as u64;
    let gone = ("n.1".to_owned(), last, Fault::KnownGone);
    assert_eq!(faults(with(&[], 0, json!([head(0)]))), std::slice::from_ref(&gone));
    // Back to where it once ended.
    let mut cut: Value = serde_json::from_str(&lines[0]).unwrap();
    let before = head(2);
    cut["chain"]["head_seq"] = before["seq"].clone();
    cut["chain"]["head_hash"] = before["hash"].clone();
    let cut = [&[cut.to_string()], &lines[1..=count - 2]].concat();
    assert!(with(&cut, count - 2, json!([before])).is_whole());
    assert_eq!(faults(with(&cut, count - 2, json!([head(0)]))), [gone]);
    let mut other = head(0);
    other["hash"] = json!("0".repeat(64));
    let rewritten = ("n.1".to_owned(), last, Fault::Rewritten);
    assert_eq!(faults(with(lines, count, json!([other]))), [rewritten]);
    assert!(!with(lines, count, json!([{ "workspace": "w" }])).is_whole());
}

/// Removing events because of their age leaves a chain that still verifies.
#[test]
fn a_chain_that_was_trimmed_verifies() {
    let mut lines = export(6);
    let base: Value = serde_json::from_str(&lines[3]).unwrap();
    let mut chain: Value = serde_json::from_str(&lines[0]).unwrap();
    chain["chain"]["base_seq"] = base["seq"].clone();
    chain["chain"]["base_hash"] = base["hash"].clone();
    lines[0] = chain.to_string();
    lines.drain(1..4);
    *lines.last_mut().unwrap() = end(4);
    assert!(verified(&lines).is_whole());
    lines.remove(1);
    *lines.last_mut().unwrap() = end(3);
    assert_eq!(first_fault(&lines).1, Fault::Removed { count: 1 });
}

#[derive(Debug, Clone)]
enum Damage {
    Edit { line: Index, place: Index, with: u8 },
    Remove(Index),
    Swap(Index, Index),
    Insert { line: Index, copy: Index },
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        (index(), index(), any::<u8>()).prop_map(|(line, place, with)| Damage::Edit {
            line,
            place,
            with
        }),
        index().prop_map(Damage::Remove),
        (index(), index()).prop_map(|(a, b)| Damage::Swap(a, b)),
        (index(), index()).prop_map(|(line, copy)| Damage::Insert { line, copy }),
        index().prop_map(Damage::Cut),
    ]
}

/// Applies damage to the events, and corrects the text's count of them.
fn apply(lines: &mut Vec<String>, damage: &Damage) {
    let mut events: Vec<_> = lines.drain(1..lines.len() - 1).collect();
    let count = events.len();
    match damage {
        Damage::Edit { line, place, with } => {
            let line = &mut events[line.index(count)];
            let mut bytes = line.clone().into_bytes();
            let at = place.index(bytes.len());
            bytes[at] = *with;
            *line = String::from_utf8_lossy(&bytes).into_owned();
        }
        Damage::Remove(line) => drop(events.remove(line.index(count))),
        Damage::Swap(a, b) => events.swap(a.index(count), b.index(count)),
        Damage::Insert { line, copy } => {
            let copy = events[copy.index(count)].clone();
            events.insert(line.index(count + 1), copy);
        }
        Damage::Cut(at) => events.truncate(at.index(count)),
    }
    let count = events.len();
    lines.splice(1.., events);
    lines.push(end(count));
}

/// The canonical forms of a text's lines.
fn said(lines: &[String]) -> Vec<Option<Node>> {
    let canonical = |line: &String| {
        let node = Node::parse(line.as_bytes()).ok()?;
        Some(Node::Text(canonical(&node).ok()?))
    };
    lines.iter().map(canonical).collect()
}

proptest! {
    /// S32: any change to the lines is found, unless their content is the same as before.
    #[test]
    fn s32_any_damage_is_found(
        events in 1_u64..20,
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let whole = export(events);
        let mut lines = whole.clone();
        for damage in &damages {
            if lines.len() > 2 {
                apply(&mut lines, damage);
            }
        }
        let report = verified(&lines);
        prop_assert_eq!(report.is_whole(), said(&lines) == said(&whole), "{:?}", report.broken);
    }

    /// Whatever order events of workspaces come in, each chain verifies by itself.
    #[test]
    fn s32_the_chain_of_each_workspace_verifies_alone(
        order in prop::collection::vec(0_usize..3, 1..40),
    ) {
        let names = ["", "w", "other"];
        let of = order.iter().zip(1_u64..).map(|(at, number)| (names[*at], number));
        let of: Vec<_> = of.collect();
        let mut chains = Chains::new("n.1".to_owned(), BTreeMap::new());
        for (workspace, lines) in written(&mut chains, &of) {
            let chain = json!({ "chain": declared(&workspace, &chains.heads()[&workspace]) });
            let mut text = vec![chain.to_string()];
            let count = lines.len();
            text.extend(lines);
            text.push(end(count));
            let report = verified(&text);
            prop_assert!(report.is_whole(), "{:?}", report.broken);
        }
    }
}
