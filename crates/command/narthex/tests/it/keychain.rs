//! Master keys in a keychain: the real Secret Service of GNOME, and programs of the user's own.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use fs_err as fs;
use narthex_control::SecretRows;
use narthex_model::{SecretName, SecretReference, WorkspaceId};
use narthex_store::Store;
use narthex_vault::{GivenKeys, KeyRing, MasterKey, SealedBackend, Vault};
use serde_json::json;

use crate::support::{Daemon, Done, Place};

const UP: [&str; 5] = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
/// Set by the test command once the programs are installed. `xtask` sets the same variable.
const PROMISED: &str = "NARTHEX_TEST_KEYCHAIN";
const PROGRAMS: [&str; 4] =
    ["secret-tool", "gnome-keyring-daemon", "dbus-run-session", "dbus-send"];
/// Unlocks the keyring, says where the bus is, and runs until the test ends.
const SESSION: &str = "printf pw-of-tests | \
    gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1 || exit 1; \
    echo \"$DBUS_SESSION_BUS_ADDRESS\"; cat >/dev/null";

/// A bus of the test's own with an unlocked keyring, which end with it.
struct Session {
    child: Child,
    bus: String,
}

impl Session {
    /// `None`, and a word about it, if the programs are not installed and `PROMISED` is not set.
    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    fn start(place: &Place) -> Option<Self> {
        let is_there = |program: &&str| {
            let mut which = Command::new("sh");
            which.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
            which.status().unwrap().success()
        };
        if !PROGRAMS.iter().all(is_there) {
            let is_promised = std::env::var_os(PROMISED).is_some();
            assert!(!is_promised, "{PROGRAMS:?} were promised and are not installed");
            eprintln!("SKIPPED with the Secret Service: {PROGRAMS:?} are not installed");
            return None;
        }
        for name in ["home", "runtime"] {
            fs::create_dir(place.path(name)).unwrap();
            place.set_mode(name, 0o700);
        }
        let mut command = Command::new("dbus-run-session");
        command.args(["--", "sh", "-c", SESSION]).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", place.path("home")).env("XDG_RUNTIME_DIR", place.path("runtime"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut bus = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut bus).unwrap();
        assert!(bus.starts_with("unix:"), "the keyring did not start: {bus:?}");
        Some(Self { child, bus: bus.trim().to_owned() })
    }

    fn say(&self, program: &str, args: &[&str]) -> String {
        let mut command = Command::new(program);
        let done = command.args(args).env("DBUS_SESSION_BUS_ADDRESS", &self.bus).output().unwrap();
        assert!(done.status.success(), "{program} {args:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// The keys that the keychain has for a data directory.
    fn ring(&self, place: &Place) -> KeyRing {
        let data = fs::canonicalize(place.path("data")).unwrap();
        let of = ["lookup", "application", "narthex", "data-dir", data.to_str().unwrap()];
        KeyRing::parse(&self.say("secret-tool", &of)).unwrap()
    }

    fn lock(&self) {
        let keyring = "array:objpath:/org/freedesktop/secrets/collection/login";
        self.say(
            "dbus-send",
            &[
                "--session",
                "--print-reply",
                "--dest=org.freedesktop.secrets",
                "/org/freedesktop/secrets",
                "org.freedesktop.Secret.Service.Lock",
                keyring,
            ],
        );
    }

    fn tell(&self, command: &mut Command) {
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.bus);
        command.env("NARTHEX_VAULT_KEYCHAIN", "secret-service");
    }

    fn up(&self, place: &Place) -> Daemon {
        let daemon = place.start_with(&UP, |command| self.tell(command));
        daemon.event("ready");
        daemon
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // If it was killed, there is nothing left to wait for.
        self.child.wait().ok();
    }
}

fn end(mut daemon: Daemon) {
    daemon.signal("TERM");
    daemon.wait();
}

/// The value of a secret in a data directory that has no daemon now, with the keys of this ring.
fn value(place: &Place, ring: &KeyRing) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&place.path("data/store.db")).await.unwrap();
        let rows = Arc::new(SecretRows::new(store.clone()));
        let keys = Arc::new(GivenKeys::new("TEST", &ring.write()).unwrap());
        let vault = Vault::new(Arc::new(SealedBackend::start(rows, keys).await.unwrap()));
        let reference = SecretReference::newest(SecretName::new("A").unwrap());
        let opened = vault.open(&WorkspaceId::default(), &reference).await.unwrap();
        store.close().await;
        opened.value.expose().to_owned()
    })
}

/// Fails if a file below the folder has a key of the ring.
fn is_clean_of(folder: &Path, ring: &KeyRing) {
    let text = ring.write();
    let keys: Vec<String> = text.lines().map(str::to_owned).collect();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            is_clean_of(&path, ring);
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            for key in &keys {
                let raw: Vec<u8> = (0..key.len())
                    .step_by(2)
                    .map(|at| u8::from_str_radix(&key[at..at + 2], 16).unwrap())
                    .collect();
                for part in [key.as_bytes(), &raw] {
                    let has = bytes.windows(part.len()).any(|window| window == part);
                    assert!(!has, "{} has a key", path.display());
                }
            }
        }
    }
}

/// X-M27, X-M28, X-F6: with the real Secret Service the first start makes a key there and nowhere
/// else; later ones take it, it is changed while the daemon runs, and locked it ends the start.
#[test]
fn x_m27_the_secret_service_keeps_the_master_key() {
    let place = Place::with(&json!({}));
    let Some(session) = Session::start(&place) else { return };
    let daemon = session.up(&place);
    let first = session.ring(&place);
    place.pipe(&["secrets", "set", "A"], "kept-in-a-keychain").succeeded();
    end(daemon);
    assert_eq!(value(&place, &first), "kept-in-a-keychain");

    let daemon = session.up(&place);
    assert_eq!(session.ring(&place), first);
    place.run(["secrets", "rotate-key"]).succeeded();
    let second = session.ring(&place);
    assert!(second.older().count() == 0 && second != first, "{second:?}");
    end(daemon);
    assert_eq!(value(&place, &second), "kept-in-a-keychain");
    let daemon = session.up(&place);
    let listed = place.run(["secrets", "list"]).succeeded();
    assert!(listed.stdout.contains(second.current().id().as_str()), "{listed:?}");
    end(daemon);
    assert!(!place.path("data/master.key").exists());
    for ring in [&first, &second] {
        is_clean_of(&place.path("data"), ring);
    }

    session.lock();
    let up = |change: &dyn Fn(&mut Command)| {
        let mut command = place.command(UP);
        session.tell(&mut command);
        change(&mut command);
        Done::from(command.stdin(Stdio::null()).output().unwrap())
    };
    up(&|_command| {}).failed(1, &["unavailable", "Secret Service", "it is locked"]);
    let nowhere = format!("unix:path={}", place.path("nowhere").display());
    up(&|command| {
        command.env("DBUS_SESSION_BUS_ADDRESS", &nowhere);
    })
    .failed(1, &["unavailable", "`secret-tool` ended with", "unlocked"]);
    up(&|command| {
        command.env("PATH", "/nowhere");
    })
    .failed(1, &["`secret-tool` cannot be started", "libsecret-tools"]);
}

/// X-M27, X-M28, S27: the user's own programs keep the key. They get none of narthex's variables
/// with secrets, and their faults end the start.
#[test]
fn x_m27_a_key_command_keeps_the_master_key() {
    let place = Place::with(&json!({}));
    place.write("load", "if test -e kept; then cat kept; fi\n");
    place.write("store", "cat >kept; env >seen\n");
    let settings = "[vault.key_command]\nload = [\"sh\", \"load\"]\nstore = [\"sh\", \"store\"]\n";
    place.write("narthex.toml", settings);
    let words = [&UP[..], &["--settings", "narthex.toml"]].concat();
    let up = || {
        let daemon = place.start_with(&words, |command| {
            command.env("NARTHEX_TOKEN", "canary-51").env("OTHER", "seen");
        });
        daemon.event("ready");
        daemon
    };
    let ring = || KeyRing::parse(&fs::read_to_string(place.path("kept")).unwrap()).unwrap();
    let daemon = up();
    let first = ring();
    place.pipe(&["secrets", "set", "A"], "kept-by-a-program").succeeded();
    place.run(["secrets", "rotate-key"]).succeeded();
    end(daemon);
    assert_ne!(ring(), first);
    end(up());
    assert_eq!(value(&place, &ring()), "kept-by-a-program");
    assert!(!place.path("data/master.key").exists());
    let seen = fs::read_to_string(place.path("seen")).unwrap();
    assert!(seen.contains("OTHER=seen") && !seen.contains("canary-51"), "{seen}");

    let other = KeyRing::new(MasterKey::generate().unwrap()).write();
    let kept = fs::read_to_string(place.path("kept")).unwrap();
    place.write("kept", &other);
    let id = ring().current().id().to_string();
    let wrong = place.run(&words).failed(1, &["unavailable", "add that key again"]);
    assert!(!wrong.stderr.contains(&id), "{wrong:?}");
    place.write("kept", "hunter2");
    let garbage = place.run(&words).failed(1, &["invalid", "64 hexadecimal digits"]);
    assert!(!garbage.stderr.contains("hunter2"), "{garbage:?}");
    fs::remove_file(place.path("kept")).unwrap();
    place.run(&words).failed(1, &["unavailable", "add that key again"]);
    assert!(!place.path("kept").exists());
    place.write("kept", &kept);

    // Two places at once are refused.
    let mut command = place.command(&words);
    let both = command.env("NARTHEX_MASTER_KEY", other.trim()).output().unwrap();
    Done::from(both).failed(1, &["conflict", "NARTHEX_MASTER_KEY", "unset it"]);
    place.write("data/master.key", &other);
    place.run(&words).failed(1, &["conflict", "data/master.key", "delete the file"]);
}

/// The keychain is a setting; half of the setting is refused.
#[test]
fn the_keychain_is_a_setting() {
    let place = Place::with(&json!({}));
    let with = |variables: &[(&str, &str)]| {
        let mut command = place.command(["status"]);
        Done::from(command.envs(variables.iter().copied()).output().unwrap())
    };
    with(&[("NARTHEX_VAULT_KEYCHAIN", "yes")])
        .failed(2, &["NARTHEX_VAULT_KEYCHAIN must be true, false, `secret-service` or `macos`"]);
    let load = ("NARTHEX_VAULT_KEY_COMMAND_LOAD", "pass,show,narthex");
    let store = ("NARTHEX_VAULT_KEY_COMMAND_STORE", "pass,insert,-mf,narthex");
    with(&[load]).failed(2, &["`vault.key_command.store` must both name a program"]);
    with(&[load, store, ("NARTHEX_VAULT_KEYCHAIN", "true")]).failed(2, &["are both set"]);
    for fine in [&[load, store][..], &[load, store, ("NARTHEX_VAULT_KEYCHAIN", "false")]] {
        with(fine).failed(1, &["no daemon runs"]);
    }
    place.write("narthex.toml", "[vault]\nkeychain = 1\n");
    place.run(["status", "--settings", "narthex.toml"]).failed(2, &["`vault.keychain` must be"]);
}
