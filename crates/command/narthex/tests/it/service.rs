//! `narthex service` with a manager of services that this test plays, and daemons that `connect`
//! starts.

use std::{net::TcpListener, os::unix::net::UnixDatagram, process::Command};

use fs_err as fs;
use serde_json::{Value, json};

use crate::{
    support::{Done, PROGRAM, Place, SOON, fixture},
    world::modern,
};

/// A manager that records its calls, starts the daemon of the unit, and stops it by SIGTERM.
const SYSTEMCTL: &str = r#"#!/bin/sh
state=$(dirname "$0")
unit="$XDG_CONFIG_HOME/systemd/user/narthex.service"
echo "$*" >> "$state/calls"
if [ -e "$state/no-bus" ]; then
    echo "Failed to connect to bus: No medium found" >&2
    exit 1
fi
[ "$1" = --user ] && shift
broken() { [ -e "$state/broken" ]; }
start() {
    broken && return
    running && return
    cd "$(sed -n 's/^WorkingDirectory=//p' "$unit")"
    eval "setsid $(sed -n 's/^ExecStart=//p' "$unit") > /dev/null 2>> $state/log < /dev/null &"
    echo $! > "$state/pid"
    while ! [ -e "$DATA/daemon.json" ]; do
        running || { echo "Job for narthex.service failed" >&2; exit 1; }
        sleep 0.05
    done
}
running() {
    pid=$(cat "$state/pid" 2> /dev/null) || return 1
    # A process that has ended stays in the table until its parent asks for it.
    case "$(sed 's/.*) //' "/proc/$pid/stat" 2> /dev/null)" in '' | Z*) return 1 ;; esac
}
stop() {
    running || return 0
    kill "$(cat "$state/pid")"
    while running; do sleep 0.05; done
}
case "$1" in
    show)
        enabled=$(cat "$state/enabled" 2> /dev/null)
        if broken; then
            printf 'ActiveState=failed\nUnitFileState=%s\nMainPID=0\n' "$enabled"
        elif running; then
            printf 'ActiveState=active\nUnitFileState=%s\nMainPID=%s\n' \
                "$enabled" "$(cat "$state/pid")"
        else
            printf 'ActiveState=inactive\nUnitFileState=%s\nMainPID=0\n' "$enabled"
        fi ;;
    daemon-reload) : ;;
    enable) echo enabled > "$state/enabled" ;;
    start) start ;;
    restart) stop; start ;;
    disable) stop; rm -f "$state/enabled" ;;
    *) exit 64 ;;
esac
"#;

const JOURNALCTL: &str = "#!/bin/sh\necho \"$*\" >> \"$(dirname \"$0\")/calls\"\n\
    printf 'one\\ntwo \\033[31m\\n'\n";

/// A place whose commands find the manager of this test, and have a home of their own.
struct Home {
    place: Place,
}

impl Home {
    fn new() -> Self {
        let place = Place::new();
        for folder in ["bin", "home", "config"] {
            fs::create_dir(place.path(folder)).unwrap();
        }
        for (name, text) in [("bin/systemctl", SYSTEMCTL), ("bin/journalctl", JOURNALCTL)] {
            place.write(name, text);
            place.set_mode(name, 0o755);
        }
        Self { place }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.command(words);
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        command.env("PATH", format!("{}:{path}", self.place.path("bin").display()));
        command.env("HOME", self.place.path("home")).env("DATA", self.place.path("data"));
        command.stdin(std::process::Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Done {
        Done::from(self.command(words).output().unwrap())
    }

    fn unit(&self) -> std::path::PathBuf {
        self.place.path("config/systemd/user/narthex.service")
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.place.path("bin/calls")).unwrap_or_default()
    }

    /// Names an address of which no test knows the port.
    fn listen_anywhere(&self) {
        fs::create_dir_all(self.place.path("config/narthex")).unwrap();
        self.place.write("config/narthex/narthex.toml", "listen = \"127.0.0.1:0\"\n");
    }

    /// The refusal of an installation, which a dry run words alike.
    fn refused_alike(&self) -> Done {
        let dry = self.run(&["service", "install", "--dry-run"]);
        let done = self.run(&["service", "install"]);
        assert_eq!((dry.code, &dry.stdout, &dry.stderr), (done.code, &done.stdout, &done.stderr));
        done
    }

    fn install(&self, port: u16) -> Done {
        self.run(&["service", "install", "--port", &port.to_string()])
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A daemon that no test's process is the parent of.
        drop(self.command(&["daemon", "stop", "--timeout", "10s", "--force"]).output());
    }
}

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn a_service_is_installed_once_shown_and_removed_without_a_trace() {
    let home = Home::new();
    let port = free_port();
    let absent = home.run(&["service", "status"]);
    assert_eq!(absent.code, Some(1));
    assert!(absent.stdout.contains("`narthex service install"), "{absent:?}");

    let done = home.install(port).succeeded();
    for text in [
        format!("Wrote {}\n", home.unit().display()),
        format!("listens at http://127.0.0.1:{port}, and starts with your session"),
        "Undo: `narthex service uninstall".to_owned(),
        "Log: `narthex service logs".to_owned(),
        "NARTHEX_TIMEOUTS_MOUNT".to_owned(),
        "loginctl enable-linger".to_owned(),
    ] {
        assert!(done.stdout.contains(&text), "no {text:?} in {done:?}");
    }
    let status = home.run(&["service", "status", "--json"]).succeeded().json();
    let data = &status["data"];
    assert_eq!((&data["is_active"], &data["is_enabled"]), (&json!(true), &json!(true)));
    assert_eq!(data["daemon"]["url"], format!("http://127.0.0.1:{port}"));
    assert_eq!(data["daemon"]["pid"], data["pid"]);

    // Once more, nothing changes and nothing is started again.
    let again = home.run(&["service", "install", "--json"]).succeeded().json();
    assert_eq!(
        (&again["data"]["is_changed"], &again["data"]["port"]),
        (&json!(false), &json!(port))
    );
    assert!(!home.calls().contains("restart"), "{}", home.calls());
    let status = home.run(&["service", "status", "--json"]).succeeded().json();
    assert_eq!(status["data"]["pid"], data["pid"]);

    let done = home.run(&["service", "logs", "--lines", "7"]).succeeded();
    assert_eq!(done.stdout, "one\ntwo \u{fffd}[31m\n");
    assert!(home.calls().contains("--user-unit narthex.service"), "{}", home.calls());
    let lines = home.run(&["service", "logs", "--json"]).succeeded().json();
    assert_eq!(lines["data"]["lines"], json!(["one", "two \u{1b}[31m"]));

    home.run(&["service", "uninstall"]).succeeded();
    assert!(!home.unit().exists());
    home.run(&["daemon", "status"]).failed(1, &[]);
    // The port stays for the next installation.
    let kept = home.run(&["service", "port", "--quiet"]).succeeded();
    assert_eq!(kept.stdout, format!("{port}\n"));
    let done = home.run(&["service", "uninstall"]).succeeded();
    assert!(done.stdout.starts_with("There is no service"), "{done:?}");
}

#[test]
fn a_dry_run_shows_the_unit_and_the_commands_and_changes_nothing() {
    let home = Home::new();
    let port = free_port().to_string();
    let words = ["service", "install", "--dry-run", "--port", &port, "--config", "mcp.json"];
    let done = home.run(&words).succeeded();
    let data = home.place.path("data");
    for text in [
        format!("\"--data\" \"{}\"", data.display()),
        format!("\"--config\" \"{}\"", home.place.path("mcp.json").display()),
        format!("WorkingDirectory={}\n", home.place.path("").display()).replace("/\n", "\n"),
        "Would run: systemctl --user start narthex.service".to_owned(),
    ] {
        assert!(done.stdout.contains(&text), "no {text:?} in {done:?}");
    }
    let system = home.run(&["service", "install", "--system", "--dry-run", "--port", &port]);
    match rustix::process::geteuid().is_root() {
        true => assert!(system.succeeded().stdout.contains("User=narthex")),
        false => drop(system.failed(1, &["belongs to root", "`sudo`"])),
    }
    assert!(!home.unit().exists() && !data.exists());
    assert!(!home.calls().contains("daemon-reload"), "{}", home.calls());
}

#[test]
fn without_a_manager_the_error_names_the_ways_to_start_a_daemon() {
    let home = Home::new();
    home.place.write("bin/no-bus", "");
    let done = home.refused_alike();
    let up = home.place.printed("up --detach");
    let connect = home.place.printed("connect");
    done.failed(1, &["there is no service manager", "No medium found", &up, &connect]);
    assert!(!home.unit().exists());
    assert!(!home.place.path("data/service.json").exists());
    let status = home.run(&["service", "status"]);
    assert_eq!(status.code, Some(1));
    let lines: Vec<_> = status.stdout.lines().collect();
    assert!(lines[0].starts_with("there is no service manager: systemd of your user cannot be"));
    assert_eq!(lines[1..], [format!("No daemon runs; start one with {up}")]);
}

/// In a session without the manager the service goes all the same.
#[test]
fn without_a_manager_the_files_are_removed_and_the_daemon_is_stopped() {
    for words in [&["service", "uninstall"][..], &["uninstall", "--yes"]] {
        let home = Home::new();
        home.install(free_port()).succeeded();
        let wants = home.unit().parent().unwrap().join("default.target.wants");
        fs::create_dir(&wants).unwrap();
        std::os::unix::fs::symlink(home.unit(), wants.join("narthex.service")).unwrap();
        home.place.write("bin/no-bus", "");
        let shown = home.run(&["service", "uninstall", "--dry-run"]).succeeded().stdout;
        assert!(shown.contains("without its manager") && !shown.contains("Would run"), "{shown}");
        let done = home.run(words).succeeded();
        for text in ["No medium found", "systemctl --user daemon-reload"] {
            assert!(done.stderr.contains(text), "{done:?}");
        }
        assert!(!done.stderr.contains("up --detach"), "{done:?}");
        assert!(!home.unit().exists() && !wants.join("narthex.service").is_symlink());
        home.run(&["daemon", "status"]).failed(1, &[]);
        home.run(words).succeeded();
    }
}

#[test]
fn a_unit_of_another_author_or_another_data_folder_stays() {
    let home = Home::new();
    fs::create_dir_all(home.unit().parent().unwrap()).unwrap();
    fs::write(home.unit(), "[Service]\nExecStart=/bin/true\n").unwrap();
    for done in [home.refused_alike(), home.run(&["service", "uninstall"])] {
        done.failed(1, &["conflict", "did not write", "`mv ", "narthex.service.old`"]);
    }
    // A file of the other name would be lost.
    let kept = home.unit().with_extension("service.old");
    fs::write(&kept, "").unwrap();
    home.run(&["service", "uninstall"]).failed(1, &["narthex.service.old2`"]);
    fs::remove_file(kept).unwrap();
    let status = home.run(&["service", "status"]);
    assert_eq!(status.code, Some(1));
    assert!(status.stdout.contains("is not the service of this data directory"), "{status:?}");
    assert!(
        status.stdout.contains("narthex did not write it; move it away with `mv "),
        "{status:?}"
    );
    assert_eq!(fs::read_to_string(home.unit()).unwrap(), "[Service]\nExecStart=/bin/true\n");
    fs::remove_file(home.unit()).unwrap();
    home.install(free_port()).succeeded();
    let other = home.place.path("other").display().to_string();
    home.run(&["service", "uninstall", "--data", &other])
        .failed(1, &["another data directory", "--data"]);
    assert!(home.unit().exists());
}

#[test]
fn a_daemon_beside_the_service_is_named() {
    let home = Home::new();
    let daemon = home.place.up();
    let pid = format!("process {} is the daemon", daemon.pid());
    home.refused_alike().failed(1, &[&pid, "`narthex daemon stop"]);
    assert!(!home.unit().exists());
}

/// The port is chosen once. A later clash is an error that names the holder and the remedy.
#[test]
fn the_port_is_kept_and_changed_by_hand_alone() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let holder = format!("process {} (", std::process::id());
    home.install(port).failed(1, &["is not free", &holder]);
    assert!(!home.unit().exists());

    // A stored port counts for each daemon of the folder.
    fs::create_dir(home.place.path("data")).unwrap();
    home.place.set_mode("data", 0o700);
    home.place.write("data/service.json", &json!({ "port": port }).to_string());
    let address = format!("cannot listen on 127.0.0.1:{port}: process ");
    let up = home.run(&["up", "--config", "mcp.json"]);
    up.failed(1, &["conflict", &address, &holder, "`narthex service port "]);
    home.run(&["service", "install"]).failed(1, &[&holder]);
    drop(taken);

    home.run(&["service", "install"]).succeeded();
    let entry = |port: u16| {
        format!(
            "{{\n  \"mcpServers\": {{ \"n\": {{ \"url\": \"http://127.0.0.1:{port}/mcp/docs\" }},\n  \
                 \"l\": {{ \"url\": \"http://localhost:{port}/mcp\" }},\n  \
                 \"other\": {{ \"url\": \"http://127.0.0.1:1/mcp\" }} }} }}\n"
        )
    };
    home.place.write("home/.claude.json", &entry(port));
    let next = free_port();
    let done = home.run(&["service", "port", &next.to_string()]).succeeded();
    for words in [
        format!("http://127.0.0.1:{next} now"),
        format!("instead of http://127.0.0.1:{port}/mcp"),
        ".claude.json has the new address".to_owned(),
    ] {
        assert!(done.stdout.contains(&words), "{done:?}");
    }
    // The files of clients follow, and nothing else in them changes.
    let now = fs::read_to_string(home.place.path("home/.claude.json")).unwrap();
    assert_eq!(now, entry(next));
    assert!(home.calls().contains("--user restart narthex.service"), "{}", home.calls());
    let status = home.run(&["service", "status", "--json"]).succeeded().json();
    assert_eq!(status["data"]["daemon"]["url"], format!("http://127.0.0.1:{next}"));

    home.listen_anywhere();
    let refused = home.run(&["service", "port", "9"]);
    refused.failed(2, &["narthex.toml: `listen` sets the address 127.0.0.1:0"]);
    let shown = home.run(&["service", "port"]).succeeded().stdout;
    let (begin, end) = ("The address is 127.0.0.1:0, from ", "; a stored port has no effect.\n");
    assert!(shown.starts_with(begin) && shown.ends_with(end), "{shown}");
}

/// A daemon without a service keeps its port: the files of clients keep the address, too.
#[test]
fn the_port_of_a_daemon_beside_the_service_is_not_changed() {
    let home = Home::new();
    let (port, next) = (free_port(), free_port());
    home.run(&["service", "port", &port.to_string()]).succeeded();
    home.run(&["up", "--config", "mcp.json", "--detach"]).succeeded();
    let client =
        format!("{{\"mcpServers\": {{\"n\": {{\"url\": \"http://127.0.0.1:{port}/mcp\"}}}}}}");
    home.place.write("home/.claude.json", &client);
    let change = ["service", "port", &next.to_string()];
    home.run(&change).failed(1, &["conflict", "keeps its port", "`narthex daemon stop"]);
    assert_eq!(fs::read_to_string(home.place.path("home/.claude.json")).unwrap(), client);
    let kept = home.run(&["service", "port", "--quiet"]).succeeded().stdout;
    assert_eq!(kept, format!("{port}\n"));
    // A port that was stored before the daemon follows.
    home.place.write("data/service.json", &json!({ "port": next }).to_string());
    let told = home.run(&change).succeeded().stdout;
    let still = format!("listens at http://127.0.0.1:{port} still; `narthex daemon restart");
    assert!(told.contains(&still), "{told}");
    let told = home.run(&["daemon", "restart"]).succeeded().stdout;
    assert!(told.contains(&format!("http://127.0.0.1:{next}.")), "{told}");
    let told = home.run(&change).succeeded().stdout;
    assert_eq!(told, format!("The port is {next} already.\n"));
}

/// The addresses that people copy into clients begin as those of the daemon do.
#[test]
fn an_encrypted_service_is_named_with_https() {
    let home = Home::new();
    let settings = "config/narthex/narthex.toml";
    fs::create_dir_all(home.place.path("config/narthex")).unwrap();
    home.place.write(settings, "tls.self_signed = true\n");
    let port = free_port();
    let done = home.install(port).succeeded();
    assert!(done.stdout.contains(&format!("listens at https://127.0.0.1:{port},")), "{done:?}");
    let next = free_port();
    let done = home.run(&["service", "port", &next.to_string()]).succeeded();
    assert!(done.stdout.contains(&format!("address, https://127.0.0.1:{next}/mcp")), "{done:?}");
    home.run(&["status"]).succeeded();
    // A variable of this shell is none of the service.
    let mut command = home.command(&["service", "install", "--dry-run"]);
    home.place.write(settings, "");
    let done = Done::from(command.env("NARTHEX_TLS_SELF_SIGNED", "true").output().unwrap());
    assert!(done.succeeded().stdout.contains(&format!("listen at http://127.0.0.1:{next}.")));
}

#[test]
fn a_service_for_other_machines_has_the_permission_in_its_unit() {
    let home = Home::new();
    let settings = "listen = \"0.0.0.0:7717\"\ntls.self_signed = true\n";
    fs::create_dir_all(home.place.path("config/narthex")).unwrap();
    home.place.write("config/narthex/narthex.toml", settings);
    let words = ["service", "install", "--dry-run"];
    home.run(&words).failed(2, &["narthex.toml: `listen` names 0.0.0.0:7717", "--allow-remote"]);
    let done = home.run(&[&words[..], &["--allow-remote"]].concat()).succeeded();
    assert!(done.stdout.contains("\"up\"") && done.stdout.contains(" \"--allow-remote\""));
    assert!(done.stdout.contains("listen at https://127.0.0.1:7717."), "{done:?}");
}

/// D42: a set-up installs the service, and its undo removes it.
#[test]
fn a_set_up_installs_the_service_and_its_undo_removes_it() {
    let home = Home::new();
    home.listen_anywhere();
    let client = json!({ "mcpServers": { "tools": {
        "command": fixture(), "args": ["--stdio"] } } });
    home.place.write("home/.claude.json", &client.to_string());
    let dry = home.run(&["setup", "--dry-run"]).succeeded().stdout;
    assert!(dry.contains("The daemon would become a service: "), "{dry}");
    assert!(!home.unit().exists());

    let done = home.run(&["setup", "--yes", "--json"]).succeeded().json();
    let done = &done["data"];
    assert_eq!(done["service"]["state"], "installed", "{done}");
    assert_eq!(
        (&done["moved"][0]["name"], &done["is_daemon_started"]),
        (&json!("tools"), &json!(true))
    );
    let status = home.run(&["service", "status", "--json"]).succeeded().json();
    assert_eq!(status["data"]["daemon"]["pid"], status["data"]["pid"]);
    // The next set-up finds it.
    let again = home.run(&["setup", "--yes"]).succeeded().stdout;
    assert!(again.contains("nothing to set up"), "{again}");
    assert!(again.contains("`narthex mcp list"), "{again}");

    let undone = home.run(&["setup", "--undo", "--yes"]).succeeded().stdout;
    assert!(undone.contains("Removed the service "), "{undone}");
    assert!(!home.unit().exists());
    home.run(&["daemon", "status", "--quiet"]).failed(1, &[]);
    let now = fs::read_to_string(home.place.path("home/.claude.json")).unwrap();
    assert_eq!(now, client.to_string());
}

/// A client that would start an earlier version in a folder of its own, which is gone, gets the
/// present program.
#[test]
fn a_set_up_replaces_an_entry_whose_program_is_gone() {
    let home = Home::new();
    home.listen_anywhere();
    let gone = home.place.path("cellar/1.0/narthex");
    let client = json!({ "mcpServers": {
        "narthex": { "command": gone, "args": ["connect", "--data", "/gone"] },
        "tools": { "command": fixture(), "args": ["--stdio"] },
    } });
    home.place.write("home/.claude.json", &client.to_string());
    let done = home.run(&["setup", "--yes", "--json"]).succeeded().json();
    assert_eq!(done["data"]["connected"][0]["client"], "claude-code/user", "{done}");
    let now = fs::read(home.place.path("home/.claude.json")).unwrap();
    let now: Value = serde_json::from_slice(&now).unwrap();
    assert_eq!(now["mcpServers"]["narthex"]["command"], PROGRAM, "{now}");
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    let now = fs::read_to_string(home.place.path("home/.claude.json")).unwrap();
    assert_eq!(now, client.to_string());
}

/// Without a service manager, a daemon in the background gets a free port and keeps it, as a
/// service does.
#[test]
fn a_set_up_without_a_manager_chooses_a_free_port_and_keeps_it() {
    let home = Home::new();
    home.place.write("bin/no-bus", "");
    // Another program of this machine may have the port, which will do.
    let _held = TcpListener::bind("127.0.0.1:7717");
    let client = json!({ "mcpServers": { "tools": {
        "command": fixture(), "args": ["--stdio"] } } });
    home.place.write("home/.claude.json", &client.to_string());
    let done = home.run(&["setup", "--yes"]).succeeded().stdout;
    let port = || {
        let text = fs::read(home.place.path("data/service.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["port"].as_u64().unwrap()
    };
    let chosen = port();
    assert!(chosen > 7717, "{chosen}");
    let address = format!("http://127.0.0.1:{chosen}");
    assert!(done.contains(&format!("The daemon listens at {address}.")), "{done}");
    assert!(done.contains("These servers moved to narthex, and work there:\n  tools"), "{done}");

    // The choice is made once: a running daemon and a later one keep it.
    let up = ["up", "--config", "mcp.json", "--detach"];
    home.run(&up).succeeded();
    home.run(&["daemon", "stop", "--timeout", "10s"]).succeeded();
    let again = home.run(&up).succeeded();
    assert!(again.stdout.contains(&address) && !again.stderr.contains("is taken"), "{again:?}");
    assert_eq!(port(), chosen);
    home.run(&["setup", "--undo", "--yes"]).succeeded();
    // Here, since two tests at once would get the same port.
    stores_its_port_at_its_first_start_alone();
}

/// A daemon in the background never moves to another port by itself: clients send their tokens to
/// the address that they have.
fn stores_its_port_at_its_first_start_alone() {
    let up = ["up", "--config", "mcp.json", "--detach"];
    let home = Home::new();
    let first = home.run(&up).succeeded();
    for words in ["the port 7717 is taken", "so the daemon has the port ", "`narthex service port"]
    {
        assert!(first.stderr.contains(words), "{first:?}");
    }
    let stored = || fs::read_to_string(home.place.path("data/service.json")).unwrap();
    let kept = stored();
    let port = serde_json::from_str::<Value>(&kept).unwrap()["port"].as_u64().unwrap();
    assert!(first.stdout.contains(&format!("at http://127.0.0.1:{port}.")), "{first:?}");
    home.run(&["daemon", "stop", "--timeout", "10s"]).succeeded();
    // The stored port is not left for another one.
    let taken = TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap())).unwrap();
    let told = format!("cannot listen on 127.0.0.1:{port}: ");
    home.run(&up).failed(1, &[&told, "`narthex service port "]);
    assert_eq!(stored(), kept);
    drop(taken);

    // A daemon was here before and stored no port, so a client may have its address.
    fs::remove_file(home.place.path("data/service.json")).unwrap();
    home.run(&up).failed(1, &["cannot listen on 127.0.0.1:7717: ", "`narthex service port "]);
    assert!(!home.place.path("data/service.json").exists());

    // A start that fails stores nothing.
    let home = Home::new();
    let broken = [&up[..], &["--tls-cert", "absent.crt", "--tls-key", "absent.key"]].concat();
    let failed = home.run(&broken);
    assert_ne!(failed.code, Some(0), "{failed:?}");
    assert!(!home.place.path("data/service.json").exists());
}

/// Beside a running daemon, a set-up names the commands that make it a service, and only where
/// there is a manager.
#[test]
fn a_set_up_beside_a_daemon_names_a_service_only_where_there_is_a_manager() {
    for has_manager in [true, false] {
        let home = Home::new();
        home.listen_anywhere();
        if !has_manager {
            home.place.write("bin/no-bus", "");
        }
        home.run(&["up", "--config", "mcp.json", "--detach"]).succeeded();
        let tools = json!({ "command": fixture(), "args": ["--stdio"] });
        let client = json!({ "mcpServers": { "tools": tools } });
        home.place.write("home/.claude.json", &client.to_string());
        let told = home.run(&["setup", "--yes"]).succeeded().stdout;
        assert_eq!(told.contains("narthex service install"), has_manager, "{told}");
        let reason = "cannot become a service: there is no service manager";
        assert_eq!(told.contains(reason), !has_manager, "{told}");
    }
}

/// A client's command starts the installed service, and asks only once.
#[test]
fn connect_starts_the_installed_service() {
    let home = Home::new();
    home.install(free_port()).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    let done = discover(&home, &["connect", "--wait", "60s"]);
    assert!(done.stderr.contains("starting the service"), "{done:?}");
    assert_eq!(home.calls().matches("start --no-block narthex.service").count(), 1);
    let status = home.run(&["service", "status", "--json"]).succeeded().json();
    assert_eq!(status["data"]["daemon"]["pid"], status["data"]["pid"]);
}

/// A service that cannot start is reported at once, with the command that shows the reason.
#[test]
fn connect_reports_a_service_that_cannot_start() {
    let home = Home::new();
    home.install(free_port()).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    home.place.write("bin/broken", "");
    let done = home.run(&["connect", "--wait", "3600s"]);
    let log = home.place.printed("service logs");
    assert!(done.stdout.is_empty(), "{done:?}");
    done.failed(1, &["error: unavailable: the service cannot start", &log]);
}

#[test]
fn the_log_of_a_daemon_beside_the_service_is_shown() {
    let home = Home::new();
    home.install(free_port()).succeeded();
    home.run(&["daemon", "stop"]).succeeded();
    home.run(&["up", "--config", "mcp.json", "--detach"]).succeeded();
    fs::write(home.place.path("data/daemon.log"), "a line\n").unwrap();
    let done = home.run(&["service", "logs"]).succeeded();
    assert_eq!(done.stdout, "a line\n");
    assert!(done.stderr.contains("the running daemon is not the service"), "{done:?}");
}

/// A client of a desktop session has none of the variables by which the shell of the set-up found
/// data and settings.
#[test]
fn the_entry_of_a_set_up_leads_to_the_same_daemon_without_the_variables_of_the_shell() {
    let home = Home::new();
    home.listen_anywhere();
    home.place.write("bin/no-bus", "");
    let tools = json!({ "command": fixture(), "args": ["--stdio"] });
    home.place.write("home/.claude.json", &json!({ "mcpServers": { "tools": tools } }).to_string());
    let told = home.run(&["setup", "--yes"]).succeeded().stdout;
    let lost = "A daemon that a client starts has no variables of this shell. Put these into the \
                settings file: NARTHEX_TIMEOUTS_MOUNT";
    // A note about the daemon stands in the plan, and once.
    let at = told.find(lost).unwrap_or_else(|| panic!("{told}"));
    assert!(told.find("These servers moved").is_some_and(|moved| at < moved), "{told}");
    assert_eq!(told.matches(lost).count(), 1, "{told}");
    let client = fs::read(home.place.path("home/.claude.json")).unwrap();
    let client: Value = serde_json::from_slice(&client).unwrap();
    let entry = &client["mcpServers"]["narthex"];
    let path = |name: &str| home.place.path(name).display().to_string();
    let (data, own, servers) =
        (path("data"), path("config/narthex/narthex.toml"), path("config/narthex/settings.json"));
    let flags = ["connect", "--data", &data, "--settings", &own, "--servers", &servers];
    assert_eq!(entry["args"], json!(flags));

    // The client starts the daemon of the same data, settings and servers.
    home.run(&["daemon", "stop"]).succeeded();
    let request = home.place.path("request");
    fs::write(&request, format!("{}\n", modern(1, "tools/list", json!({})))).unwrap();
    let mut command = Command::new(entry["command"].as_str().unwrap());
    command.args(flags).args(["--wait", "60s"]).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", home.place.path("home"));
    command.stdin(fs::File::open(request).unwrap().into_parts().0);
    let done = Done::from(command.output().unwrap()).succeeded();
    assert!(done.lines()[0].to_string().contains("__echo"), "{done:?}");
    home.run(&["daemon", "status"]).succeeded();
}

/// Runs `connect` with one request, and returns its output once that is answered.
fn discover(home: &Home, words: &[&str]) -> Done {
    let request = home.place.path("request");
    fs::write(&request, format!("{}\n", modern(1, "server/discover", json!({})))).unwrap();
    let mut command = home.command(words);
    command.stdin(fs::File::open(request).unwrap().into_parts().0);
    let done = Done::from(command.output().unwrap()).succeeded();
    assert_eq!(done.lines()[0]["id"], 1, "{done:?}");
    done
}

/// I-M33: clients that start at the same time share one daemon, which belongs to none of them: it
/// has a session of its own, and its parent has ended.
#[test]
fn i_m33_clients_that_start_at_once_make_one_daemon() {
    let home = Home::new();
    home.listen_anywhere();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| discover(&home, &["connect", "--wait", "60s"])))
            .collect();
        clients.into_iter().for_each(|client| drop(client.join().unwrap()));
    });
    let status = home.run(&["daemon", "status", "--json"]).succeeded().json();
    let pid = status["data"]["pid"].as_u64().unwrap();
    let of = Command::new("ps").args(["-o", "sid=,tty=,args=", "-p", &pid.to_string()]).output();
    let of = String::from_utf8(of.unwrap().stdout).unwrap();
    let words: Vec<_> = of.split_whitespace().collect();
    assert_eq!((words[0], words[1]), (pid.to_string().as_str(), "?"), "{of}");
    assert!(of.contains("--background"), "{of}");
    // It works in no folder of a client.
    let folder = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(folder, fs::canonicalize(home.place.path("home")).unwrap());
    // Its log is in the data folder, and `service logs` shows it without a service.
    let log = home.place.path("data/daemon.log");
    fs::write(&log, "a line\n").unwrap();
    assert_eq!(home.run(&["service", "logs"]).succeeded().stdout, "a line\n");
}

/// I-M33: a daemon that was stopped stays stopped while its clients live.
#[test]
fn i_m33_a_stopped_daemon_is_not_started_by_its_clients() {
    let home = Home::new();
    home.listen_anywhere();
    let mut command = home.command(&["connect", "--wait", "60s"]);
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut client = command.spawn().unwrap();
    let began = std::time::SystemTime::now();
    while home.run(&["daemon", "status"]).code != Some(0)
        || !home.place.path("data/daemon.json").exists()
    {
        assert!(began.elapsed().unwrap() < SOON);
    }
    let input = client.stdin.take().unwrap();
    let ask = format!("{}\n", modern(1, "server/discover", json!({})));
    std::io::Write::write_all(&mut &input, ask.as_bytes()).unwrap();
    let mut output = std::io::BufReader::new(client.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
    home.run(&["daemon", "stop"]).succeeded();
    let said = std::io::BufReader::new(client.stderr.take().unwrap());
    let said = std::io::BufRead::lines(said).map(Result::unwrap);
    let said: Vec<_> = said.take_while(|line| !line.contains("waiting for one")).collect();
    assert_eq!(said.iter().filter(|line| line.contains("starting a daemon")).count(), 1);
    drop(input);
    client.wait().unwrap();
    home.run(&["daemon", "status"]).failed(1, &[]);
}

#[test]
fn a_daemon_in_the_background_is_reported_and_started_once() {
    let place = Place::new();
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0", "--detach", "--json"];
    let first = place.run(words).succeeded().json();
    assert_eq!(first["data"]["is_started"], true, "{first}");
    let again = place.run(words).succeeded().json();
    assert_eq!(again["data"]["is_started"], false, "{again}");
    assert_eq!(again["data"]["pid"], first["data"]["pid"]);
    place.run(["daemon", "stop"]).succeeded();
    // The log has the steps of the daemon's life with their times.
    let log = place.path("data/daemon.log");
    let text = fs::read_to_string(&log).unwrap();
    let url = first["data"]["url"].as_str().unwrap();
    for step in [&*format!("listens at {url}, process "), "stopping: open calls finish", "stopped"]
    {
        let is_told = |line: &str| line.contains("Z  INFO ") && line.contains(step);
        assert!(text.lines().any(is_told), "no {step} in {text}");
    }
    assert!(!text.contains("Ctrl-C"), "{text}");
    // A long log is put away.
    fs::File::options().write(true).open(&log).unwrap().set_len(11 << 20).unwrap();
    let told = place.run([&words[..6], &["--tls-self-signed"]].concat()).succeeded().stdout;
    for text in ["at https://127.0.0.1:", "fingerprint ", "daemon.log\n", &place.printed("setup")] {
        assert!(told.contains(text), "no {text:?} in {told}");
    }
    assert!(fs::metadata(&log).unwrap().len() < 11 << 20);
    assert_eq!(fs::metadata(place.path("data/daemon.log.old")).unwrap().len(), 11 << 20);
    place.run(["daemon", "stop"]).succeeded();
    let listen = ["up", "--config", "mcp.json", "--listen", "nowhere", "--detach"];
    place.run(listen).failed(1, &["failed to start", "`nowhere`, which is not an address"]);
}

#[test]
fn a_daemon_reports_to_systemd_when_it_listens() {
    let place = Place::new();
    let path = place.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let words = ["up", "--config", "mcp.json", "--listen", "127.0.0.1:0"];
    let _daemon = place.start_with(&words, |command| {
        command.env("NOTIFY_SOCKET", &path);
    });
    let mut text = [0; 64];
    let length = socket.recv(&mut text).unwrap();
    assert_eq!(&text[..length], b"READY=1\n");
    assert!(place.path("data/daemon.json").exists());
}
