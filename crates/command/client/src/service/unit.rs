//! Units of systemd, as text.

use super::{
    own::{MARK, SYSTEM_DATA, SYSTEM_USER},
    spec::Spec,
};

/// The unit of a user's service.
pub(super) fn user(spec: &Spec) -> String {
    let Spec { folder, .. } = spec;
    format!(
        "# {MARK}, which also replaces it.\n\
         # Put changes into a drop-in: systemctl --user edit narthex.service\n\
         {}\n[Service]\n{}WorkingDirectory={}\n{}\n[Install]\nWantedBy=default.target\n",
        section_unit(""),
        started(spec),
        specifiers(folder),
        ENDS,
    )
}

/// The unit of the machine's service, which has a user of its own.
pub(super) fn system(spec: &Spec) -> String {
    let Spec { folder, data, .. } = spec;
    let state = match data == SYSTEM_DATA {
        true => "StateDirectory=narthex\nStateDirectoryMode=0700\n",
        false => "",
    };
    format!(
        "# {MARK}, which also replaces it.\n\
         # Put changes into a drop-in: systemctl edit narthex.service\n\
         {}\n[Service]\n{}User={SYSTEM_USER}\nGroup={SYSTEM_USER}\n{state}WorkingDirectory={}\n\
         # No program of the service gains rights, and none writes below /usr, /boot and /etc.\n\
         NoNewPrivileges=yes\nProtectSystem=full\nPrivateTmp=yes\n{}\n\
         [Install]\nWantedBy=multi-user.target\n",
        section_unit("Wants=network-online.target\nAfter=network-online.target\n"),
        started(spec),
        specifiers(folder),
        ENDS,
    )
}

/// The end of the section `[Service]`: restarts, and a stop that lets open calls finish.
const ENDS: &str = "\
Restart=on-failure
RestartSec=2
# Wrong usage and wrong settings need a person, not another start.
RestartPreventExitStatus=2
# The daemon alone gets the signal to stop: it lets open calls finish, then stops its servers.
KillMode=mixed
TimeoutStopSec=60
";

fn section_unit(more: &str) -> String {
    format!(
        "[Unit]\nDescription=narthex, the gateway between AI agents and their MCP servers\n{more}\
         StartLimitIntervalSec=60\nStartLimitBurst=5\n"
    )
}

/// The lines that start the daemon, and start it anew with the present program. It reports to
/// systemd when it listens.
fn started(spec: &Spec) -> String {
    // The path of the program is no place for variables.
    let mut lines = format!("Type=notify\nExecStart={}", quoted(&spec.program));
    for argument in &spec.words()[1..] {
        lines.push_str(&format!(" {}", word(argument)));
    }
    lines.push('\n');
    let reload = ["daemon", "restart", "--data", &spec.data].map(word).join(" ");
    lines.push_str(&format!("ExecReload={} {reload}\n", quoted(&spec.program)));
    for (name, value) in &spec.environment {
        lines.push_str(&format!("Environment={}\n", quoted(&format!("{name}={value}"))));
    }
    lines
}

/// A word of a command line: there `$` begins a variable.
pub(super) fn word(text: &str) -> String {
    quoted(text).replace('$', "$$")
}

/// A word in quotes, with the escapes of systemd.
fn quoted(text: &str) -> String {
    format!("\"{}\"", specifiers(text).replace('\\', "\\\\").replace('"', "\\\""))
}

/// A text in which `%` begins no specifier.
fn specifiers(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        cli::RemoteArgs,
        service::{self, Manager, absolute_entries, is_ours, port_in, with_port},
    };

    fn spec() -> Spec {
        Spec {
            program: "/opt/my tools/narthex".to_owned(),
            data: "/home/a b/50% $HOME \"x\" \\".to_owned(),
            settings: None,
            config: Some("/srv/mcp.json".to_owned()),
            port: None,
            remote: RemoteArgs::default(),
            folder: "/srv/50% of it".to_owned(),
            environment: vec![("PATH", "/usr/bin:/opt/$x/100%".to_owned())],
        }
    }

    /// The words of a line of a unit, read by the rules of systemd.syntax(7) and
    /// systemd.service(5).
    fn read(line: &str, has_variables: bool) -> Vec<String> {
        let mut words = Vec::new();
        let mut rest = line.chars();
        while rest.by_ref().next() == Some('"') {
            let mut word = String::new();
            loop {
                match rest.next().unwrap() {
                    '"' => break,
                    '\\' => word.push(rest.next().unwrap()),
                    '%' => word.push(rest.next().filter(|c| *c == '%').unwrap()),
                    '$' if has_variables => {
                        word.push(rest.next().filter(|c| *c == '$').unwrap());
                    }
                    c => word.push(c),
                }
            }
            words.push(word);
            if !matches!(rest.next(), Some(' ') | None) {
                panic!("no space between the words of {line}");
            }
        }
        words
    }

    fn line<'t>(text: &'t str, key: &str) -> &'t str {
        text.lines().find_map(|line| line.strip_prefix(key)).unwrap()
    }

    #[test]
    fn a_unit_starts_exactly_the_given_words() {
        let spec = spec();
        for text in [user(&spec), system(&spec)] {
            assert_eq!(read(line(&text, "ExecStart="), true), spec.words());
            let reload = [&*spec.program, "daemon", "restart", "--data", &spec.data];
            assert_eq!(read(line(&text, "ExecReload="), true), reload);
            let path = read(line(&text, "Environment="), false);
            assert_eq!(path, ["PATH=/usr/bin:/opt/$x/100%"]);
            assert_eq!(line(&text, "WorkingDirectory="), "/srv/50%% of it");
            assert!(is_ours(&text));
        }
    }

    #[test]
    fn a_stop_reaches_the_daemon_first_and_wrong_settings_are_not_retried() {
        for text in [user(&spec()), system(&spec())] {
            for one in ["KillMode=mixed", "RestartPreventExitStatus=2", "Type=notify"] {
                assert_eq!(text.lines().filter(|line| *line == one).count(), 1, "{one}: {text}");
            }
        }
    }

    #[test]
    fn only_the_system_unit_names_a_user_and_its_usual_data_folder() {
        assert!(!user(&spec()).contains("User="));
        let elsewhere = system(&spec());
        assert!(elsewhere.contains("\nUser=narthex\n") && !elsewhere.contains("StateDirectory"));
        let usual = system(&Spec { data: SYSTEM_DATA.to_owned(), ..spec() });
        assert!(usual.contains("\nStateDirectory=narthex\nStateDirectoryMode=0700\n"));
    }

    #[test]
    fn a_unit_is_known_by_its_mark_and_its_data_folder() {
        let text = user(&spec());
        let is_about = |data: &str| service::is_about(&text, Manager::SystemdUser, data.as_ref());
        assert!(is_about(&spec().data));
        assert!(!is_about("/home/a b/50%") && !is_about("/home"));
        assert!(!is_ours("[Unit]\nDescription=narthex\n"));
        let bad = Spec { folder: "/a\nExecStart=/bin/rm".to_owned(), ..spec() };
        let failure = service::text(&bad, Manager::SystemdUser).unwrap_err();
        assert!(failure.message.contains("control character"), "{failure}");
    }

    /// `systemd-analyze` prints unknown keys and bad values, and ends with 0 all the same.
    #[test]
    fn systemd_accepts_the_units() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("narthex.service");
        let verify = |text: &str, manager: &str| {
            fs_err::write(&file, text).unwrap();
            let mut command = std::process::Command::new("systemd-analyze");
            command.args(["verify", "--recursive-errors=no", manager]).arg(&file);
            command.env("XDG_RUNTIME_DIR", folder.path()).output()
        };
        let spec = Spec { program: "/bin/sh".to_owned(), ..spec() };
        let texts = [(user(&spec), "--user"), (system(&spec), "--system")];
        for (text, manager) in texts {
            let Ok(done) = verify(&text, manager) else {
                eprintln!("SKIPPED: units are not verified, since systemd-analyze is missing");
                return;
            };
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success() && said.is_empty(), "{manager}: {said}\n{text}");
            let wrong = text.replace("KillMode=mixed", "KillMode=some");
            let said = verify(&wrong, manager).unwrap().stderr;
            assert!(String::from_utf8_lossy(&said).contains("some"), "nothing was verified");
        }
    }

    #[test]
    fn the_port_of_a_unit_is_read_and_changed() {
        let port = |number| std::num::NonZeroU16::new(number).unwrap();
        let text = system(&Spec { port: Some(port(7717)), ..spec() });
        assert_eq!(port_in(&text), Some(port(7717)));
        let changed = with_port(&text, port(80));
        assert_eq!(changed, system(&Spec { port: Some(port(80)), ..spec() }));
        assert_eq!(port_in(&user(&spec())), None);
    }

    #[test]
    fn entries_of_path_that_depend_on_the_folder_are_left_out() {
        assert_eq!(
            absolute_entries("/usr/bin::node_modules/.bin:./x:/opt/bin"),
            "/usr/bin:/opt/bin"
        );
    }
}
