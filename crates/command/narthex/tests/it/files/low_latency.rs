//! A folder that keeps the machine's processors awake while it is used.

use std::{
    fs::OpenOptions,
    path::Path,
    process::{Command, Stdio},
    time::SystemTime,
};

use super::{Mount, has_fuse, place, shell};
use crate::support::SOON;

const DEVICE: &str = "/dev/cpu_dma_latency";

fn holds_device(process: u64) -> bool {
    let files = fs_err::read_dir(format!("/proc/{process}/fd")).unwrap();
    let mut names = files.filter_map(|file| fs_err::read_link(file.ok()?.path()).ok());
    names.any(|name| name == Path::new(DEVICE))
}

/// Asked for alone, and from the first call on.
#[test]
fn processors_stay_awake_only_with_low_latency() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _daemon = place.up();
    if OpenOptions::new().write(true).open(DEVICE).is_err() {
        let refused = ["processors cannot be kept awake", "without `--low-latency`"];
        std::fs::create_dir(place.path("mcp")).unwrap();
        place.run(["mount", "mcp", "--low-latency"]).failed(1, &refused);
        return;
    }
    let call = r#"echo '{"message":"x"}' > mcp/0-demo/tools/echo; cat mcp/0-demo/tools/echo"#;
    let mount = Mount::told(&place, |_without| {});
    shell(&place, call).succeeded();
    assert!(!holds_device(mount.1["process"].as_u64().unwrap()));
    drop(mount);
    let (_mount, told) = Mount::told(&place, |command| {
        command.arg("--low-latency");
    });
    let process = told["process"].as_u64().unwrap();
    assert!(!holds_device(process), "no call runs yet");
    // The mount closes the device a while after the last call has ended; this call does not end.
    let script = r#"exec 3<>mcp/0-demo/tools/sleep; echo '{"ms":600000}' >&3; exec cat <&3"#;
    let mut waiting = Command::new("bash");
    waiting.args(["-c", script]).current_dir(place.path("")).stdout(Stdio::null());
    let mut waiting = waiting.spawn().unwrap();
    let began = SystemTime::now();
    while !holds_device(process) {
        assert!(began.elapsed().unwrap() < SOON, "the processors may sleep");
        std::thread::yield_now();
    }
    let pid = waiting.id().to_string();
    assert!(Command::new("kill").args(["-s", "INT", &pid]).status().unwrap().success());
    waiting.wait().unwrap();
}
