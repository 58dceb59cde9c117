//! Answers that a folder stores, while servers come and go.

use std::process::Command;

use serde_json::json;

use super::{Mount, has_fuse};
use crate::support::{Done, Place, fixture_entry};

/// S29: an answer of another server under the same name is not read, nor are open files of it.
#[test]
fn s29_a_stored_result_is_removed_with_its_server() {
    if !has_fuse() {
        return;
    }
    let place = Place::with(&json!({ "demo": fixture_entry() }));
    let _daemon = place.up();
    let _mount = Mount::new(&place, None);
    let script = r#"exec 3<>mcp/0-demo/tools/echo; echo '{"message":"open"}' >&3; head -c 1 <&3
        echo '{"message":"old"}' > mcp/0-demo/tools/echo
        cat mcp/0-demo/tools/echo | grep -c old; "$0" mcp reload >&2
        cat mcp/0-demo/tools/echo | grep -c old
        jq '.servers.demo.env.OTHER = "1"' mcp.json > next.json; mv next.json mcp.json
        "$0" mcp reload >&2
        while cat mcp/0-demo/tools/echo 2>/dev/null; do :; done >/dev/null
        cat mcp/0-demo/tools/echo; head -c 1 <&3
        echo '{"message":"new"}' > mcp/0-demo/tools/echo; cat mcp/0-demo/tools/echo | grep -c new
        jq '.servers = {}' mcp.json > next.json; mv next.json mcp.json; "$0" mcp reload >&2
        while stat mcp/0-demo; do :; done >/dev/null 2>&1
        cat mcp/0-demo/tools/echo"#;
    let mut bash = Command::new("timeout");
    bash.args(["120", "bash", "-c", script]).arg(place.command([""; 0]).get_program());
    let done = Done::from(bash.current_dir(place.path("")).output().unwrap());
    assert_eq!(done.stdout, "{1\n1\n1\n", "{done:?}");
    for told in [
        "cat: mcp/0-demo/tools/echo: Invalid argument",
        "head: error reading 'standard input': No such device",
        "cat: mcp/0-demo/tools/echo: No such file or directory",
    ] {
        assert!(done.stderr.contains(told), "{told}: {done:?}");
    }
}
