//! Folders with the files of the run whose token is shown, in whichever way.

use std::process::Command;

use serde_json::{Value, json};

use super::{Mount, has_fuse, of_run, place, run_of, shell};
use crate::support::Place;

/// Mounts by a command with these words and changes; returns the command's report, and the names in
/// the folder.
fn mounted(place: &Place, words: &[&str], change: impl FnOnce(&mut Command)) -> (Value, String) {
    let (_mount, told) = Mount::told(place, |command| {
        command.args(words);
        change(command);
    });
    let names = shell(place, "ls mcp; cat mcp/*/tools/echo.md | head -1").succeeded().stdout;
    (told, names)
}

/// D20, A-13: `--pid` mounts the run of this number for the holder of its token: the daemon's own,
/// from its data directory, or one in a file, or one in the environment.
#[test]
fn d20_a_folder_is_mounted_for_the_number_of_the_token() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    let (_, first) = run_of(&place);
    let (_, second) = run_of(&place);
    place.write("token", &format!("{first}\n"));
    place.set_mode("token", 0o600);

    let (told, names) = mounted(&place, &["--pid", "0"], |_own| {});
    assert_eq!((&told["pid"], &told["servers"]), (&json!(0), &json!(["0-demo", "0-narthex"])));
    assert_eq!(names, "0-demo\n0-narthex\n# echo\n");
    let (told, names) = mounted(&place, &["--pid", "1", "--token-file", "token"], |_file| {});
    assert_eq!((&told["pid"], &told["servers"]), (&json!(1), &json!(["1-mine", "1-narthex"])));
    assert_eq!(names, "1-mine\n1-narthex\n# echo\n");
    let (told, names) = mounted(&place, &["--pid", "2"], |command| {
        command.env("NARTHEX_TOKEN", &second);
    });
    assert_eq!((&told["pid"], &told["servers"]), (&json!(2), &json!(["2-mine", "2-narthex"])));
    assert_eq!(names, "2-mine\n2-narthex\n# echo\n");

    // A command that was to give a token may have failed.
    for words in [&["mount", "mcp"][..], &["vfs", "ls"]] {
        of_run(&place, "", words).failed(2, &["NARTHEX_TOKEN is empty"]);
    }

    // A folder for another run than the token's is not mounted.
    let wrong = ["mount", "mcp", "--pid", "2", "--token-file", "token"];
    place.run(wrong).failed(1, &["belongs to run 1", "not to run 2"]);
    assert_eq!(shell(&place, "ls mcp").succeeded().stdout, "");
}
