//! Commands as a shell reads them, and what is added to them where they are printed.

use proptest::prelude::*;

use super::*;

fn chosen(data: &str, workspace: &str) -> Chosen {
    let flags = vec![("--data", data.to_owned())];
    Chosen { flags, workspace: Some(workspace.to_owned()) }
}

/// A shell reads a command back as it was meant.
fn read(command: &str) -> Vec<String> {
    shlex::split(command).unwrap()
}

/// D36: what leads to the same workspace and daemon is added where the command takes it.
#[test]
fn d36_printed_commands_name_workspace_and_data_folder() {
    let at = chosen("/srv/a b", "team");
    let text = |command: CommandLine| command.with(&at);
    assert_eq!(
        text(narthex("secrets set {}", &[&"KEY"])),
        "narthex secrets set KEY --workspace team --data '/srv/a b'"
    );
    // Some commands belong to no workspace.
    assert_eq!(
        text(narthex("secrets rotate-key", &[])),
        "narthex secrets rotate-key --data '/srv/a b'"
    );
    assert_eq!(text(narthex("mcp reload", &[])), "narthex mcp reload --data '/srv/a b'");
    assert_eq!(
        text(narthex("audit list --installation", &[])),
        "narthex audit list --installation --data '/srv/a b'"
    );
    // An explicit workspace counts, the default one too.
    let own = |workspace: &str| narthex("runs list", &[]).in_workspace(workspace);
    assert_eq!(text(own("other")), "narthex runs list --workspace other --data '/srv/a b'");
    assert_eq!(text(own("default")), "narthex runs list --data '/srv/a b'");
    // Arguments for another program stay behind the options.
    assert_eq!(
        text(narthex("mcp add NAME -- COMMAND", &[])),
        "narthex mcp add NAME --data '/srv/a b' -- COMMAND"
    );
    let passing_on = narthex("mcp add {}", &[&"a"]).passing_on(["npx", "-y", "it's one"]);
    assert_eq!(
        read(&text(passing_on)),
        ["narthex", "mcp", "add", "a", "--data", "/srv/a b", "--", "npx", "-y", "it's one"]
    );
    assert_eq!(narthex("runs list", &[]).to_string(), "narthex runs list");
}

/// D36: a text of another process is completed command by command, and its daemon replaced.
#[test]
fn d36_commands_of_a_text_are_completed() {
    let text = "no secret `K`; set it with `narthex secrets set K --data '/their s'`, or look at \
                `narthex status`; `narthex` alone stays, and `narthex runs list --workspace one`";
    let at = Chosen {
        flags: vec![("--daemon-url", "https://n.example".to_owned())],
        workspace: Some("team".to_owned()),
    };
    assert_eq!(
        completed_for(text, &at),
        "no secret `K`; set it with `narthex secrets set K --workspace team --daemon-url \
         https://n.example`, or look at `narthex status --daemon-url https://n.example`; \
         `narthex` alone stays, and `narthex runs list --workspace one --daemon-url \
         https://n.example`"
    );
    let door = completed_in(text, "team");
    assert!(
        door.contains("set K --data '/their s' --workspace team`")
            || door.contains("set K --workspace team"),
        "{door}"
    );
    // Completing again changes nothing.
    assert_eq!(completed_for(&completed_for(text, &at), &at), completed_for(text, &at));
    let open = "an open `narthex runs 'list";
    assert_eq!(completed_for(open, &at), open);
}

proptest! {
    /// D36: whatever a value has in it, a shell gives it back, and so does the search in a text.
    #[test]
    fn d36_any_value_survives_a_shell(value in "[^\0]{1,20}", data in "[^\0]{1,20}") {
        let command = narthex("sessions end {}", &[&value]).with(&chosen(&data, "team"));
        let words = ["narthex", "sessions", "end", &value, "--workspace", "team", "--data", &data];
        prop_assert_eq!(read(&command), words);
        let found = commands_in(&format!("it's over; `{command}` ends `it`"));
        prop_assert_eq!(found, [words[1..].to_vec()]);
    }
}

/// D36: a command that reaches no daemon names no token and no address of one.
#[test]
fn d36_local_commands_name_no_token() {
    let flags = vec![
        ("--data", "/srv/a".to_owned()),
        ("--token-file", "run.tok".to_owned()),
        ("--daemon-url", "https://n.example".to_owned()),
    ];
    let at = Chosen { flags, workspace: None };
    assert_eq!(narthex("up", &[]).with(&at), "narthex up --data /srv/a");
    assert_eq!(
        narthex("mcp list", &[]).with(&at),
        "narthex mcp list --data /srv/a --token-file run.tok --daemon-url https://n.example"
    );
}

/// D36: flags that a template has itself stay, and count instead of those of the process.
#[test]
fn d36_flags_of_a_template_are_kept() {
    let at = Chosen {
        flags: vec![("--data", "/srv/a".to_owned()), ("--token-file", "run.tok".to_owned())],
        workspace: None,
    };
    let text = |template: &'static str| narthex(template, &[]).with(&at);
    assert_eq!(text("up --settings my.toml"), "narthex up --settings my.toml --data /srv/a");
    assert_eq!(
        text("status --token-file FILE"),
        "narthex status --token-file FILE --data /srv/a",
        "the token of the template is sent to the daemon of the process"
    );
    for own in ["status --data /srv/b", "status --daemon-url=https://n.example"] {
        assert_eq!(text(own.to_owned().leak()), format!("narthex {own}"), "another daemon");
    }
    // A printed command is completed once more with the text that has it.
    for printed in ["up --settings my.toml", "status --token-file FILE"] {
        let printed = format!("see `{}`", text(printed));
        let whole = Chosen { flags: at.flags[..1].to_vec(), workspace: None };
        assert_eq!(completed_for(&printed, &whole), printed);
    }
}

/// D36: the settings file of a daemon is nothing to another process.
#[test]
fn d36_flags_of_another_process_are_replaced() {
    let at = Chosen { flags: vec![("--data", "/srv/a".to_owned())], workspace: None };
    for (printed, expected) in [
        ("status --settings /d.toml --data /srv/a", "status --data /srv/a"),
        ("status --data=/srv/b", "status --data /srv/a"),
        ("up --settings /d.toml --data /srv/b", "up --data /srv/a"),
    ] {
        let text = format!("`narthex {printed}`");
        assert_eq!(completed_for(&text, &at), format!("`narthex {expected}`"));
    }
}
