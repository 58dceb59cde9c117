//! The machine of the measurements.

use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::nginx::Nginx;
use crate::process::capture;

const SOON: Duration = Duration::from_secs(30);

pub(super) fn describe(nginx: &Nginx, profile: &str) -> Result<Vec<String>> {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let processor = processor().unwrap_or_else(|| "an unknown processor".to_owned());
    let first_line = |program: &str, args: &[&str]| -> Result<String> {
        let said = capture(Command::new(program).args(args), SOON)?.stdout;
        Ok(said.lines().next().unwrap_or_default().trim().to_owned())
    };
    Ok(vec![
        format!("{cores} cores of {processor}, shared by everything that runs"),
        format!("Linux {}", first_line("uname", &["-r"])?),
        format!("{}, profile `{profile}`", first_line("rustc", &["--version"])?),
        format!("nginx {}", nginx.version),
        format!("measured on {}", first_line("date", &["-u", "+%Y-%m-%d"])?),
    ])
}

fn processor() -> Option<String> {
    let text = fs_err::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
