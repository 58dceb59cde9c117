//! The command line as a user types it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::process;
use crate::workspace;

const DONE: Duration = Duration::from_secs(60);

/// `narthex call … everything echo message=hello`, in both notations of arguments.
pub(super) fn calls(option: &str, value: &Path) -> Result<()> {
    for arguments in ["message=by hand", r#"{"message":"by hand"}"#] {
        let mut command = Command::new(workspace::built("narthex"));
        command.arg("call").arg(option).arg(value).args(["everything", "echo", arguments]);
        let done = process::capture(&mut command, DONE)?;
        let said = format!("{}{}", done.stdout, done.stderr);
        ensure!(done.status.success(), "it ended with {}\n{said}", done.status);
        ensure!(done.stdout.contains("Echo: by hand"), "the echo is not in\n{said}");
    }
    let mut command = Command::new(workspace::built("narthex"));
    command.arg("call").arg(option).arg(value).args(["everything", "no-such-tool"]);
    let done = process::capture(&mut command, DONE)?;
    ensure!(done.status.code() == Some(1), "an unknown tool ended with {}", done.status);
    Ok(())
}
