//! `cargo xtask check`: what must be spotless before any test is worth running.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::tidy;
use crate::workspace::cargo;

/// Runs all checks, also after one has failed. False if any has.
pub(crate) fn run() -> Result<bool> {
    let mut is_good = step("fmt", &mut cargo(&["fmt", "--all", "--check"]));
    println!("== tidy");
    is_good &= tidy::run(&tidy::Options::default())?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    is_good &= step("clippy", &mut cargo(&clippy));
    let doc = ["doc", "--workspace", "--no-deps", "--document-private-items"];
    is_good &= step("doc", cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"));
    if process::answers("cargo", &["deny", "--version"]) {
        let deny = ["deny", "--workspace", "check", "-A", "unused-wrapper"];
        is_good &=
            step("deny", &mut cargo(&[&deny[..], &["bans", "licenses", "sources"]].concat()));
    } else {
        println!("== deny: left out, cargo-deny is not installed (an extra, see deny.toml)");
    }
    Ok(is_good)
}

fn step(name: &str, command: &mut Command) -> bool {
    println!("== {name}");
    match process::run(command) {
        Ok(()) => true,
        Err(error) => {
            println!("{name}: {error:#}");
            false
        }
    }
}
