//! Where settings come from, and what is said of wrong ones.

use crate::support::{Done, Place};

fn with_variable(place: &Place, name: &str, value: &str) -> Done {
    let mut command = place.command(["status"]);
    Done::from(command.env(name, value).output().unwrap())
}

#[test]
fn unknown_and_wrong_settings_are_all_told() {
    let place = Place::new();
    place.write("narthex.toml", "lisen = \"x\"\n[limits]\nsessions = -1\n[timeouts]\ncall = 30\n");
    place.run(["status", "--settings", "narthex.toml"]).failed(
        2,
        &[
            "narthex.toml: `lisen` is no setting; did you mean `listen`?",
            "`limits.sessions` must be a whole number",
            "`timeouts.call` must be a duration",
        ],
    );
    place.write("narthex.toml", "listen = ");
    place.run(["status", "--settings", "narthex.toml"]).failed(2, &["no valid TOML"]);
    place.run(["status", "--settings", "none.toml"]).failed(1, &["none.toml"]);
    with_variable(&place, "NARTHEX_LIMITS_SESSIONS", "many")
        .failed(2, &["NARTHEX_LIMITS_SESSIONS must be a whole number"]);
    with_variable(&place, "NARTHEX_LOG", "a=b=c").failed(2, &["log level"]);
}

#[test]
fn flags_win_over_variables_and_these_over_the_file() {
    let place = Place::new();
    fs_err::create_dir_all(place.path("config/narthex")).unwrap();
    place.write("config/narthex/narthex.toml", "data = \"/from-file\"\n");
    let told = |command: &mut std::process::Command| Done::from(command.output().unwrap()).stderr;
    let mut from_file = place.command(["status"]);
    assert!(told(from_file.env_remove("NARTHEX_DATA")).contains("/from-file"));
    let mut from_variable = place.command(["status"]);
    assert!(told(from_variable.env("NARTHEX_DATA", "/from-variable")).contains("/from-variable"));
    let mut from_flag = place.command(["status", "--data", "/from-flag"]);
    assert!(told(from_flag.env("NARTHEX_DATA", "/from-variable")).contains("/from-flag"));
    // An empty variable counts as unset.
    assert!(told(place.command(["status"]).env("NARTHEX_DATA", "")).contains("/from-file"));
}

#[test]
fn a_configuration_in_the_settings_is_approved() {
    let place = Place::new();
    place.write("narthex.toml", "config = \"mcp.json\"\nlisten = \"127.0.0.1:0\"\n");
    place.start(&["up", "--settings", "narthex.toml"]).event("ready");
}
