//! The environment of a child: its declared variables and little else of the daemon's (D22).

use std::ffi::OsString;

use narthex_supervisor::{BaseEnvironment, Process, ProcessSpec};
use tokio_util::task::TaskTracker;

use crate::support::{read_all, shell};

async fn output(spec: ProcessSpec) -> String {
    let tracker = TaskTracker::new();
    let (_process, mut io) = Process::spawn(spec, &tracker).await.unwrap();
    read_all(&mut io).await
}

fn fake_daemon() -> BaseEnvironment {
    BaseEnvironment::from_lookup(|name| {
        let value = match name {
            "PATH" => "/usr/local/bin:/usr/bin:/bin",
            "HOME" => "/home/of-the-daemon",
            "npm_config_cache" => "/cache",
            "AWS_SECRET_ACCESS_KEY" => "hunter2",
            _ => return None,
        };
        Some(OsString::from(value))
    })
}

/// E132, D22, A-15.
#[tokio::test]
async fn a_child_sees_exactly_its_environment() {
    let mut spec = ProcessSpec::new("env", fake_daemon());
    spec.env = vec![("TOKEN".into(), "a=b".into()), ("HOME".into(), "/elsewhere".into())];
    let output = output(spec).await;
    let mut seen: Vec<&str> = output.lines().collect();
    seen.sort_unstable();
    let expected = [
        "HOME=/elsewhere",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "TOKEN=a=b",
        "npm_config_cache=/cache",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn commands_are_found_in_the_declared_path() {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/echo", directory.path().join("only-here")).unwrap();
    let mut spec = ProcessSpec::new("only-here", fake_daemon());
    spec.env = vec![("PATH".into(), directory.path().to_str().unwrap().into())];
    spec.args = vec!["found".into()];
    assert_eq!(output(spec).await, "found\n");
}

#[tokio::test]
async fn a_child_starts_in_its_working_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = fs_err::canonicalize(directory.path()).unwrap();
    let mut spec = shell("pwd -P");
    spec.working_dir = Some(path.clone());
    assert_eq!(output(spec).await.trim_end(), path.to_str().unwrap());
}

/// D22, A-15.
#[tokio::test]
async fn a_child_leads_its_own_process_group() {
    let tracker = TaskTracker::new();
    let script = "cut -d' ' -f5 /proc/$$/stat";
    let (process, mut io) = Process::spawn(shell(script), &tracker).await.unwrap();
    assert_eq!(read_all(&mut io).await.trim_end(), process.id().to_string());
}
