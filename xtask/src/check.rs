//! `cargo xtask check`: what must be spotless before any test is worth running.

use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::tidy;
use crate::tools;
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
    is_good &= tool("machete", &tools::MACHETE, &[]);
    let rules = ["--workspace", "check", "-D", "unused-wrapper", "bans", "licenses", "sources"];
    is_good &= tool("deny", &tools::DENY, &rules);
    is_good &= advisories();
    Ok(is_good)
}

/// Runs a program of crates.io. It is a fault if that cannot be built.
fn tool(name: &str, tool: &tools::Tool, args: &[&str]) -> bool {
    match tool.command() {
        Ok(mut command) => step(name, command.args(args)),
        Err(error) => {
            println!("== {name}\n{name}: {error:#}");
            false
        }
    }
}

/// Compares the dependencies with the advisories of `RustSec`. Where their database at GitHub
/// cannot be fetched, this says so and is no fault.
fn advisories() -> bool {
    let mut fetch = match tools::DENY.command() {
        Ok(deny) => deny,
        // The step before has said why.
        Err(_unbuilt) => return false,
    };
    if let Err(error) = process::run(fetch.args(["fetch", "db"])) {
        println!("{}", "!".repeat(80));
        println!("!! ADVISORIES WERE SKIPPED: their database cannot be fetched: {error:#}");
        println!("!! run `cargo xtask check` where github.com/RustSec/advisory-db can be reached");
        println!("{}", "!".repeat(80));
        return true;
    }
    let rules = ["--offline", "--workspace", "check", "advisories"];
    tool("advisories", &tools::DENY, &rules)
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
