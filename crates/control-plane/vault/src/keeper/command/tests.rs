//! Tests with small programs that behave as keychains do, and as keychains should not.

use fs_err as fs;
use narthex_model::ErrorKind;
use tempfile::TempDir;

use super::*;

/// A folder for the programs, and their stored files.
struct Scene {
    dir: TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).into_os_string().into_string().unwrap()
    }

    /// A shell program; `$K` is the file with the stored text.
    fn program(&self, text: &str) -> Vec<String> {
        let line = format!("K='{}'; {text}", self.path("kept"));
        words(&["sh", "-c", &line, "program"])
    }

    fn command(&self, load: &str, store: &str) -> KeyCommand {
        KeyCommand::new(self.program(load), self.program(store))
    }

    /// The manner of `secret-tool`, with these programs.
    fn secret_tool(&self, load: &str, search: &str) -> KeyCommand {
        let manner = Manner::SecretTool { search: self.program(search) };
        KeyCommand { manner, ..self.command(load, KEEP) }
    }

    fn kept(&self) -> String {
        fs::read_to_string(self.path("kept")).unwrap()
    }
}

const GIVE: &str = "if test -e \"$K\"; then cat \"$K\"; fi";
const KEEP: &str = "cat >\"$K\"";

fn ring() -> KeyRing {
    KeyRing::new(MasterKey::generate().unwrap())
}

/// The error, after a look that neither it nor its causes hold anything of the ring.
fn refused<T: std::fmt::Debug>(
    done: Result<T, KeeperError>,
    ring: &KeyRing,
) -> (ErrorKind, String) {
    let error = done.unwrap_err();
    let shown = format!("{error} {error:?}");
    for key in ring.write().lines() {
        assert!(!shown.contains(&key[..16]) && !shown.contains(&key[48..]), "{shown}");
    }
    (error.kind(), error.to_string())
}

/// X-M27: made on demand, read back, the same from then on, and replaced whole.
#[test]
fn x_m27_a_key_ring_is_created_in_a_keychain_and_replaced() {
    let scene = Scene::new();
    let command = scene.command(GIVE, KEEP);
    assert!(command.is_ours());
    assert_eq!(command.load().unwrap(), None);
    let made = command.create().unwrap();
    assert_eq!(command.load().unwrap(), Some(made.clone()));
    assert_eq!(command.create().unwrap(), made);
    let both = made.with(MasterKey::generate().unwrap()).unwrap();
    command.replace(&both).unwrap();
    assert_eq!(command.load().unwrap(), Some(both.clone()));
    assert_eq!(scene.kept().lines().count(), 1);
    assert_eq!(KeyRing::parse(&scene.kept()).unwrap(), both);
}

/// S27, X-E118: the keys are in no argument and in no variable of the programs, which do not get
/// variables that are narthex's own either.
#[test]
fn s27_keys_reach_programs_only_through_pipes() {
    let scene = Scene::new();
    let keep = "cat >\"$K\"; env >\"$K.env\"; cat /proc/$$/cmdline >\"$K.line\"";
    let command = scene.command(GIVE, keep);
    let made = command.without(vec!["PATH".into()]).create().unwrap();
    let key = made.write().trim().to_owned();
    for file in ["kept.env", "kept.line"] {
        let told = fs::read(scene.path(file)).unwrap();
        let told = String::from_utf8_lossy(&told);
        assert!(!told.is_empty() && !told.contains(&key), "{file}: {told}");
    }
    let told = fs::read_to_string(scene.path("kept.env")).unwrap();
    let inherited = std::env::var_os("PATH").unwrap().into_string().unwrap();
    assert!(!told.lines().any(|line| line == format!("PATH={inherited}")), "{told}");
}

/// X-M28: each failure has a remedy, and shows no part of the key.
#[test]
fn x_m28_each_failure_of_a_key_program_is_reported_without_the_key() {
    let scene = Scene::new();
    let ring = ring();
    fs::write(scene.path("kept"), ring.write().as_bytes()).unwrap();
    let load = |text: &str| refused(scene.command(text, KEEP).load(), &ring);
    for (program, kind, told) in [
        ("echo \"no: $(cat $K)\" >&2; exit 3", ErrorKind::Unavailable, "exit status: 3: no: …;"),
        ("cat \"$K\"; exit 1", ErrorKind::Unavailable, "exit status: 1;"),
        ("kill -9 $$", ErrorKind::Unavailable, "signal: 9"),
        ("head -c 20 \"$K\"", ErrorKind::Invalid, "key 1 is not 64 hexadecimal digits"),
        ("cat \"$K\" \"$K\"", ErrorKind::Invalid, "key 2 is listed twice"),
        ("echo", ErrorKind::Invalid, "it has no key"),
        ("printf '\\377'", ErrorKind::Invalid, "not text"),
        ("head -c 20000 /dev/zero", ErrorKind::Invalid, "more than a key ring can have"),
    ] {
        let (is, text) = load(program);
        assert!(is == kind && text.contains(told), "{program}: {is:?}, {text}");
        assert!(text.contains("vault.key_command"), "{program}: {text}");
    }
    let none = KeyCommand::new(words(&["/nowhere/at-all"]), words(&["sh"]));
    let (is, text) = refused(none.load(), &ring);
    assert_eq!(is, ErrorKind::Unavailable);
    assert!(text.contains("`/nowhere/at-all` cannot be started"), "{text}");
    assert!(text.ends_with("check `vault.key_command` in the settings"), "{text}");
}

/// A program that waits for good is killed with all processes that it has started.
#[test]
fn a_program_that_does_not_end_is_killed() {
    let scene = Scene::new();
    // No process ever writes there.
    let text = "mkfifo \"$K\"; cat \"$K\" & cat \"$K\"; wait";
    let command = KeyCommand { limit: Duration::from_millis(1), ..scene.command(text, KEEP) };
    let (kind, text) = refused(command.load(), &ring());
    assert_eq!(kind, ErrorKind::Unavailable);
    assert!(text.contains("did not end within"), "{text}");
}

/// X-M27: a program that reports success without storing is found out, at the first key and at a
/// change.
#[test]
fn a_key_program_that_does_not_store_the_key_is_detected() {
    let scene = Scene::new();
    let forgets = scene.command(GIVE, "cat >/dev/null");
    let first = ring();
    let (kind, text) = refused(forgets.create(), &first);
    assert!(kind == ErrorKind::Unavailable && text.contains("returns another value"), "{text}");
    scene.command(GIVE, KEEP).replace(&first).unwrap();
    let second = first.with(MasterKey::generate().unwrap()).unwrap();
    assert!(refused(forgets.replace(&second), &second).1.contains("returns another value"));
    assert_eq!(forgets.load().unwrap(), Some(first.clone()));
    // The same with a program that does not read, and a program that fails.
    let deaf = scene.command(GIVE, "exec <&-; exit 0");
    assert!(refused(deaf.replace(&second), &second).1.contains("returns another value"));
    let fails = scene.command(GIVE, "cat >&2; exit 2");
    let (_, text) = refused(fails.replace(&second), &second);
    assert!(text.contains("exit status: 2: …"), "{text}");
    assert_eq!(fails.load().unwrap(), Some(first));
}

/// X-M28: a keychain that the user does not unlock is not taken for an empty one.
#[test]
fn a_locked_secret_service_is_not_treated_as_empty() {
    let scene = Scene::new();
    let lookup = "test -e \"$K\" && cat \"$K\" || exit 1";
    let open = scene.secret_tool(lookup, "exit 0");
    assert_eq!(open.load().unwrap(), None);
    let made = open.create().unwrap();
    assert_eq!(open.load().unwrap(), Some(made.clone()));
    let locked = scene.secret_tool("exit 1", "echo '[/1]'; cat \"$K\"");
    for done in [locked.load().map(|_| ()), locked.create().map(|_| ()), locked.replace(&made)] {
        let (kind, text) = refused(done, &made);
        assert!(kind == ErrorKind::Unavailable && text.contains("it is locked"), "{text}");
    }
    // With another exit code the program says nothing of a ring.
    let odd = scene.secret_tool("exit 3", "exit 0");
    assert!(refused(odd.load(), &made).1.contains("exit status: 3"));
    let away = scene.secret_tool("exit 1", "echo 'secret-tool: no bus' >&2; exit 1");
    assert!(refused(away.load(), &made).1.contains("no bus"));
    let said = scene.secret_tool("echo 'Cannot autolaunch D-Bus' >&2; exit 1", "exit 0");
    let (_, text) = refused(said.load(), &made);
    assert!(text.contains("Cannot autolaunch D-Bus; check that"), "{text}");
}

/// X-M27, E138: the lines that `security` reads. Their effect on macOS is not tested.
#[test]
fn the_macos_keychain_command_goes_through_the_pipe() {
    let scene = Scene::new();
    let real = KeyCommand::keychain(Keychain::MacOs, Path::new("/Users/a b/data")).unwrap();
    assert_eq!(real.store, ["security", "-i"]);
    assert_eq!(real.place(), "the keychain of macOS (service narthex, account /Users/a b/data)");
    assert_eq!(real.load[0..2], ["security", "find-generic-password"]);
    let find = "test -e \"$K\" || exit 44; sed 's/.* -w //' \"$K\"";
    let command = KeyCommand { load: scene.program(find), store: scene.program(KEEP), ..real };
    assert_eq!(command.load().unwrap(), None);
    let made = command.create().unwrap();
    let both = made.with(MasterKey::generate().unwrap()).unwrap();
    command.replace(&both).unwrap();
    let keys = both.write().trim().replace('\n', ",");
    let line = "add-generic-password -U -s narthex -a \"/Users/a b/data\" -w ";
    assert_eq!(scene.kept(), format!("{line}{keys}\n"));
    let refusing = |program: &str| KeyCommand {
        load: scene.program(program),
        ..KeyCommand::keychain(Keychain::MacOs, Path::new("/data")).unwrap()
    };
    // Only the exit code of `security` for this, without any output, means that there is no ring.
    assert_eq!(refusing("exit 44").load().unwrap(), None);
    for (program, text) in [("exit 1", "exit status: 1"), ("echo x; exit 44", "exit status: 44")] {
        assert!(refused(refusing(program).load(), &made).1.contains(text), "{program}");
    }
    let away = KeyCommand { load: words(&["/nowhere/security"]), ..refusing("") };
    assert!(refused(away.load(), &made).1.contains("only on macOS"));
    for path in ["/a\"b", "/a\\b", "/a\nb"] {
        let refused = KeyCommand::keychain(Keychain::MacOs, Path::new(path));
        assert!(matches!(refused, Err(KeeperError::KeychainPath(_))), "{path:?}");
    }
}

/// S27: a text that grows is copied, and its old place is not overwritten.
#[test]
fn s27_the_line_with_the_keys_is_written_in_one_place() {
    let both = ring().with(MasterKey::generate().unwrap()).unwrap();
    let macos = KeyCommand::keychain(Keychain::MacOs, Path::new("/data")).unwrap();
    for command in [macos, KeyCommand::new(Vec::new(), Vec::new())] {
        let line = command.stored_line(&both);
        assert_eq!(line.capacity(), line.len(), "{:?}", command.manner);
    }
}

/// A keychain may print comments and line ends, up to a limit.
#[test]
fn the_output_of_a_key_program_has_a_limit() {
    let scene = Scene::new();
    let ring = ring();
    for (length, is_taken) in [(16 * 1024, true), (16 * 1024 + 1, false)] {
        let mut text = ring.write().to_string();
        text.push_str(&"\n".repeat(length - text.len()));
        fs::write(scene.path("kept"), text).unwrap();
        let loaded = scene.command(GIVE, KEEP).load();
        match is_taken {
            true => assert_eq!(loaded.unwrap(), Some(ring.clone())),
            false => assert!(refused(loaded, &ring).1.contains("more than a key ring can have")),
        }
    }
}

#[test]
fn the_secret_service_is_asked_by_the_data_directory() {
    let command = KeyCommand::keychain(Keychain::SecretService, Path::new("/data")).unwrap();
    let of = ["application", "narthex", "data-dir", "/data"];
    assert_eq!(command.load, [&["secret-tool", "lookup"][..], &of].concat());
    assert!(command.store.ends_with(&words(&of)), "{:?}", command.store);
    assert!(command.place().contains("/data"));
    let away = KeyCommand { load: words(&["/nowhere/secret-tool"]), ..command };
    assert!(refused(away.load(), &ring()).1.contains("libsecret-tools"));
}
