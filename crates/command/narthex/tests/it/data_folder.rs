//! The data folder against other users of the machine (D4, S9).

use std::{
    net::TcpListener,
    process::{Command, Stdio},
};

use fs_err as fs;
use serde_json::json;

use crate::support::{Done, Place};

/// A user of the machine who has nothing to do with narthex.
const OTHER: &str = "65534";

/// True if tests can act as another user; prints a note if they cannot.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
fn can_be_others() -> bool {
    let can = rustix::process::geteuid().is_root()
        && Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !can {
        eprintln!("SKIPPED: acting as another user takes root and setpriv (of util-linux)");
    }
    can
}

/// Runs a script of the shell as another user.
fn as_other(place: &Place, script: &str) -> Done {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", OTHER, "--regid", OTHER, "--clear-groups", "sh", "-c", script]);
    Done::from(command.current_dir(place.path("")).output().unwrap())
}

/// A place that other users may enter, but not write.
fn visible() -> Place {
    let place = Place::new();
    place.set_mode("", 0o755);
    place
}

/// D4: a user who can write the data folder could have tokens sent to them. No command sends one,
/// and the message has the command that mends it.
#[test]
fn d4_no_token_is_sent_to_an_address_planted_by_another_user() {
    if !can_be_others() {
        return;
    }
    let place = visible();
    let daemon = place.up();
    place.run(["status"]).succeeded();
    let trap = TcpListener::bind("127.0.0.1:0").unwrap();
    trap.set_nonblocking(true).unwrap();
    let planted = json!({ "pid": daemon.pid(), "config": "mcp.json", "socket_dir": null,
        "url": format!("http://{}", trap.local_addr().unwrap()) });
    let plant = format!("rm -f data/daemon.json && printf %s '{planted}' > data/daemon.json");
    // A new folder is closed to other users.
    assert_ne!(as_other(&place, &plant).code, Some(0));
    place.run(["status"]).succeeded();

    place.set_mode("data", 0o777);
    as_other(&place, &plant).succeeded();
    let data = fs::canonicalize(place.path("data")).unwrap();
    let remedy = format!("chmod go-w '{}'", data.display());
    for words in [
        &["status"][..],
        &["runs", "list"],
        &["connect"],
        &["mcp", "list"],
        &["secrets", "list"],
        &["daemon", "status"],
        &["daemon", "stop"],
    ] {
        place.run(words).failed(1, &["has the mode 0777", &remedy]);
    }
    // The folder is closed again, but the planted file is still there.
    place.set_mode("data", 0o700);
    let file = data.join("daemon.json");
    let remedy = format!("chown 0 '{}'", file.display());
    place.run(["status"]).failed(1, &["belongs to the user with the id 65534", &remedy]);
    let connected = trap.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(
        connected,
        Err(std::io::ErrorKind::WouldBlock),
        "the socket of another user was sent something"
    );
}

/// D4: nothing is written where another user has put a link, and no daemon starts in a folder that
/// is not its user's own.
#[test]
fn d4_no_daemon_starts_in_a_folder_that_another_user_may_write() {
    if !can_be_others() {
        return;
    }
    let place = visible();
    fs::create_dir(place.path("data")).unwrap();
    place.write("precious", "text");
    place.set_mode("data", 0o777);
    let up = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let plant = "for name in daemon.json daemon.lock admin.token client.token; do \
                 ln -s ../precious data/$name; done";
    as_other(&place, plant).succeeded();
    place.run(up).failed(1, &["has the mode 0777", "chmod go-w"]);
    place.set_mode("data", 0o755);
    place.run(up).failed(1, &["daemon.lock", "not a regular file"]);
    // The same is true of each file of the folder, also if a link leads to a file of the daemon's
    // own user.
    place.set_mode("precious", 0o600);
    for name in ["store.db", "store.db-wal", "master.key", "daemon.log"] {
        for planted in fs::read_dir(place.path("data")).unwrap() {
            fs::remove_file(planted.unwrap().path()).unwrap();
        }
        place.set_mode("data", 0o777);
        as_other(&place, &format!("ln -s ../precious data/{name}")).succeeded();
        place.set_mode("data", 0o755);
        place
            .run(up)
            .failed(1, &[&format!("data/{name}` is not a regular file; move it"), "`mv '"]);
    }
    assert_eq!(fs::read_to_string(place.path("precious")).unwrap(), "text");

    let theirs = visible();
    theirs.set_mode("", 0o777);
    as_other(&theirs, "mkdir data").succeeded();
    theirs.run(up).failed(1, &["belongs to the user with the id 65534", "chown 0 "]);
    theirs.run(["status"]).failed(1, &["chown 0 "]);
}

/// D27: a file that is named starts programs without an approval of its content, so another user
/// must not be able to write it, neither now nor while it is followed.
#[test]
fn d27_a_named_file_that_other_users_may_write_is_refused() {
    let place = Place::new();
    place.write("named.json", &json!({ "servers": {} }).to_string());
    place.set_mode("named.json", 0o666);
    let up = ["up", "--config", "named.json", "--listen", "127.0.0.1:0"];
    place.run(up).failed(1, &["has the mode 0666", "chmod go-w", "named.json"]);
}

/// D4, D27: the same is true of settings, which decide whom to trust and which programs start.
#[test]
fn d4_settings_of_another_user_are_not_used() {
    if !can_be_others() {
        return;
    }
    let place = visible();
    fs::create_dir_all(place.path("config/narthex")).unwrap();
    place.set_mode("config/narthex", 0o777);
    as_other(&place, "echo 'listen = \"127.0.0.1:0\"' > config/narthex/narthex.toml").succeeded();
    place.run(["status"]).failed(1, &["narthex.toml` belongs to the user with the id 65534"]);
    fs::remove_file(place.path("config/narthex/narthex.toml")).unwrap();

    let entry = json!({ "mcp": { "servers": { "evil": { "command": "touch",
        "args": [place.path("started")] } } } });
    let plant = format!("printf %s '{entry}' > config/narthex/settings.json");
    as_other(&place, &plant).succeeded();
    let daemon = place.up();
    let rows = place.run(["status", "--json"]).succeeded().json()["data"].take();
    let names: Vec<_> =
        rows["servers"].as_array().unwrap().iter().map(|row| &row["alias"]).collect();
    assert_eq!(names, ["fixture"], "{rows}");
    assert!(!place.path("started").exists());
    drop(daemon);
    // A token that others may have written is shown to no daemon.
    as_other(&place, "echo theirs > config/narthex/token").succeeded();
    let words = ["status", "--daemon-url", "http://127.0.0.1:9", "--token-file"];
    let words = words.into_iter().chain(["config/narthex/token"]);
    place.run(words).failed(1, &["config/narthex/token` belongs to the user"]);
}
