//! What `narthex strace` tells of programs that use a folder.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use super::{Mount, daemon, has_fuse, place, shell};

/// R-M35: each file has its own name, a tool's failure and what the folder refuses by itself are
/// told, and the folder's own look at what the run has is not.
#[test]
fn r_m35_what_programs_do_at_a_folder_is_told() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = daemon(&place);
    let _mount = Mount::new(&place, None);
    let mut watching = place.command(["strace", "local", "--json"]);
    let mut watching = watching.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut told = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!(told()["type"], "begin");
    shell(
        &place,
        "cat mcp/0-demo/tools/echo.md; echo '{}' > mcp/0-demo/tools/fail
         echo 'no JSON' > mcp/0-demo/tools/echo; cat mcp/0-demo/tools/absent
         timeout 0.2 bash -c \
             \"exec 3<>mcp/0-demo/tools/sleep; echo '{\\\"ms\\\":30000}' >&3; cat <&3\"
         true",
    );
    let mut wanted = vec![
        ("Open", "echo.md", None),
        ("Read", "echo.md", None),
        ("Write", "fail", Some("tool_error")),
        ("Write", "echo", Some("INVALID")),
        ("Stat", "absent", Some("NOT_FOUND")),
        ("Write", "sleep", Some("BROKEN_PIPE")),
    ];
    while !wanted.is_empty() {
        let line = told();
        let name = line["path"].as_str().unwrap().rsplit('/').next().unwrap();
        let seen = (line["operation"].as_str().unwrap(), name, line["error"].as_str());
        if line["is_inner"] == false {
            assert!(seen.0 != "Stat" || seen.1 == "absent", "nobody has asked that: {line}");
            assert!(line["path"] != "/mnt/mcp" && line["size"] != 0, "{line}");
            if seen.1 == "sleep" && seen.0 == "Write" {
                let took = line["duration_us"].as_u64();
                assert!(line["size"] == 13 && took.is_some_and(|took| took > 100), "{line}");
            }
            wanted.retain(|one| *one != seen);
        }
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}
