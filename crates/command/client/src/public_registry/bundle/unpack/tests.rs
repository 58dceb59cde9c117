//! Tests of archives: those that are unpacked, and attacks.

use std::{io::Write, os::unix::fs::PermissionsExt};

use flate2::{Compression, write::DeflateEncoder};
use narthex_testkit::archive::{Entry, FILE, FOLDER, LINK, PROGRAM, archive};

use super::*;

const SMALL: Limits = Limits { entries: 8, bytes: 4096 };

/// Unpacks an archive, and gives the folder.
fn unpacked(bytes: &[u8], limits: Limits) -> Result<tempfile::TempDir, String> {
    let place = tempfile::tempdir().unwrap();
    let (file, into) = (place.path().join("bundle.zip"), place.path().join("files"));
    fs::write(&file, bytes).unwrap();
    fs::create_dir(&into).unwrap();
    let done = unpack(&file, &into, limits, &|| false);
    let around: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(around.len(), 2, "a file is outside of the folder: {around:?}");
    done.map(|()| place)
}

#[track_caller]
fn refused(entries: &[Entry]) -> String {
    unpacked(&archive(entries), SMALL).map(drop).unwrap_err()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// E210: files, folders and programs are unpacked for their owner alone.
#[test]
fn e210_an_archive_is_unpacked_with_private_modes() {
    let text = "x".repeat(1000);
    let packed =
        Entry { deflated: Some(deflated(text.as_bytes())), ..Entry::new("b/c.txt", FILE, &text) };
    let entries = [
        Entry::new("manifest.json", FILE, "{}"),
        Entry::new("a/", FOLDER, ""),
        Entry::new("a/run", PROGRAM, "#!/bin/sh\n"),
        packed,
        Entry::new("no-mode", 0, ""),
    ];
    let place = unpacked(&archive(&entries), SMALL).unwrap();
    let mode = |name: &str| {
        let path = place.path().join("files").join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    };
    assert_eq!((mode("manifest.json"), mode("no-mode")), (0o600, 0o600));
    assert_eq!(
        (mode("a"), mode("a/run"), mode("b"), mode("b/c.txt")),
        (0o700, 0o700, 0o700, 0o600)
    );
    assert_eq!(fs::read_to_string(place.path().join("files/b/c.txt")).unwrap(), text);
}

/// E210: an entry outside of the folder is refused (zip slip).
#[test]
fn e210_attack_an_entry_outside_of_the_folder() {
    for name in ["../evil", "a/../../evil", "/tmp/evil", "..\\evil", "C:\\evil", "C:evil", "a//b"] {
        let why = refused(&[Entry::new("manifest.json", FILE, "{}"), Entry::new(name, FILE, "x")]);
        assert!(why.starts_with(&format!("its file `{name}` has ")), "{why}");
    }
    let not_text = Entry { name: vec![b'a', 0xff], ..Entry::new("", FILE, "x") };
    assert!(refused(&[not_text]).contains("not UTF-8"));
}

/// E210: a link is refused, and so is a file that would be written through it.
#[test]
fn e210_attack_a_link_and_a_file_behind_it() {
    let entries = [Entry::new("out", LINK, "/tmp"), Entry::new("out/evil", FILE, "x")];
    assert_eq!(refused(&entries), "its file `out` is a link");
    let device = Entry::new("device", 0o020_666, "");
    assert!(refused(&[device]).contains("neither a file nor a folder"));
    let folder = Entry::new("a", FOLDER, "x");
    assert!(refused(&[folder]).contains("neither a file nor a folder"));
}

/// E210: programs that would run as another user are refused.
#[test]
fn e210_attack_a_setuid_program() {
    for mode in [0o104_755, 0o102_755] {
        assert!(refused(&[Entry::new("run", mode, "x")]).contains("setuid"));
    }
}

/// E210: two files of one name, and a file in place of a folder, are refused.
#[test]
fn e210_attack_two_files_with_one_name() {
    let twice = [Entry::new("a", FILE, "good"), Entry::new("a", FILE, "evil")];
    assert_eq!(refused(&twice), "it has two files with one name");
    let below = [Entry::new("a", FILE, "x"), Entry::new("a/b", FILE, "x")];
    assert!(refused(&below).contains("has the place of another file"));
    let above = [Entry::new("a/b", FILE, "x"), Entry::new("a", FILE, "x")];
    assert!(refused(&above).contains("has the place of another file"));
}

/// E210: bytes are counted as they are unpacked, whatever the archive says of its sizes.
#[test]
fn e210_attack_a_bomb_of_zeros() {
    let zeros = vec![0; 1024 * 1024];
    let bomb = |size| Entry {
        deflated: Some(deflated(&zeros)),
        size,
        ..Entry::new("zeros", FILE, &zeros)
    };
    let honest = archive(&[bomb(zeros.len())]);
    assert!(honest.len() < 2048, "{}", honest.len());
    let why = unpacked(&honest, SMALL).map(drop).unwrap_err();
    assert!(why.contains("makes it longer than"), "{why}");
    // One that claims to be small.
    assert!(unpacked(&archive(&[bomb(10)]), SMALL).is_err());
    // Many that are small by themselves.
    let many: Vec<_> = (0..5).map(|n| Entry::new(&format!("{n}"), FILE, vec![0; 1000])).collect();
    assert!(refused(&many).contains("its file `4` makes it longer"));
}

/// E210: the number of entries is limited, also for the form of archives with very many.
#[test]
fn e210_attack_too_many_entries() {
    let many: Vec<_> = (0..9).map(|n| Entry::new(&format!("{n}"), FILE, "")).collect();
    assert_eq!(refused(&many), "it has more than 8 files");
    let mut full = archive(&many[..1]);
    let end = full.len() - 22;
    full[end + 10..end + 12].copy_from_slice(&[0xff, 0xff]);
    let why = unpacked(&full, SMALL).map(drop).unwrap_err();
    assert!(why.contains("more than 65,535 files"), "{why}");
    let mut large = archive(&many[..1]);
    large.splice(end..end, b"PK\x06\x07".iter().copied().chain([0; 16]));
    let why = unpacked(&large, SMALL).map(drop).unwrap_err();
    assert!(why.contains("more than 65,535 files"), "{why}");
}

/// E210: a damaged file is refused, and a text that is no archive.
#[test]
fn e210_attack_a_damaged_archive() {
    let whole = archive(&[Entry::new("a", FILE, "content")]);
    let mut changed = whole.clone();
    let at = changed.windows(7).position(|bytes| bytes == b"content").unwrap();
    changed[at] = b'C';
    assert!(unpacked(&changed, SMALL).map(drop).unwrap_err().contains("is damaged"));
    for bytes in [&whole[..whole.len() - 5], b"no archive", b""] {
        assert!(unpacked(bytes, SMALL).map(drop).unwrap_err().contains("no archive"));
    }
}

/// E211: a signal ends the work.
#[test]
fn e211_unpacking_stops_when_the_command_does() {
    let place = tempfile::tempdir().unwrap();
    let (file, into) = (place.path().join("bundle.zip"), place.path().join("files"));
    fs::write(&file, archive(&[Entry::new("a", FILE, "x")])).unwrap();
    fs::create_dir(&into).unwrap();
    let why = unpack(&file, &into, SMALL, &|| true).unwrap_err();
    assert!(why.contains("was stopped"), "{why}");
}
