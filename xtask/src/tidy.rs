//! The house rules that no other tool checks.
//!
//! Each rule is a function from texts to findings, so that its tests can show it failing. This file
//! collects the texts, runs the rules and prints what they found.

mod checklists;
mod commands;
mod crates;
mod edges;
mod layers;
mod links;
mod owners;
mod prose;
mod ratchets;
mod requirements;
mod shape;
mod sizes;
mod source;
mod syntax;
mod words;

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use self::source::Source;
use crate::workspace;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const REQUIREMENTS: &str = "docs/requirements.md";
const SECURITY: &str = "docs/concepts/security.md";

#[derive(Args, Default)]
pub(crate) struct Options {
    /// Print the table of imports as it is in the manifests now, and check nothing.
    #[arg(long)]
    edges: bool,
    /// Name each place that a ratchet counts: unclear prose, and tangle inside of crates.
    #[arg(long)]
    ratchets: bool,
}

#[derive(Args)]
pub(crate) struct Index {
    /// Only the claim with this number, such as X-M39.
    number: Option<String>,
}

/// One broken rule: where, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    place: String,
    message: String,
}

impl Finding {
    fn new(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }

    fn at(source: &Source, line: usize, message: impl Into<String>) -> Self {
        Self::new(format!("{}:{line}", source.path), message)
    }
}

/// Checks all rules. False if one is broken.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let root = workspace::root();
    let packages = crates::packages()?;
    if options.edges {
        print!("{}", edges::render(&packages));
        return Ok(true);
    }
    let findings = check(&root, &packages, options)?;
    for finding in &findings {
        println!("{}: {}", finding.place, finding.message);
    }
    match findings.len() {
        0 => println!("tidy: every rule is kept"),
        count => println!("tidy: {count} findings"),
    }
    Ok(findings.is_empty())
}

/// Prints the claims of `docs/requirements.md`, each with the tests that carry its number.
pub(crate) fn print_index(options: &Index) -> Result<bool> {
    let sources = sources(&workspace::root())?;
    let document = sources.iter().find(|source| source.path == REQUIREMENTS);
    let document = document.with_context(|| format!("{REQUIREMENTS} is missing"))?;
    let number = options.number.as_deref();
    let index = requirements::index(document, &sources, number);
    ensure!(!index.is_empty(), "{REQUIREMENTS} has no claim {}", number.unwrap_or_default());
    print!("{index}");
    Ok(true)
}

fn check(root: &Path, packages: &[crates::Package], options: &Options) -> Result<Vec<Finding>> {
    let sources = sources(root)?;
    let mut findings = Vec::new();
    let mut sizes = sizes::Sizes::default();
    let commands = commands::declared(&sources);
    for source in &sources {
        findings.extend(words::check(source));
        if source.is_rust() {
            findings.extend(words::rust(source));
            findings.extend(crates::check_clock(source, packages));
            findings.extend(crates::check_examples(source, packages));
            match syntax::Syntax::parse(source) {
                Ok(syntax) => {
                    findings.extend(syntax.findings(source));
                    findings.extend(commands::check(source, &syntax, &commands));
                    findings.extend(sizes.add(source, &syntax));
                }
                Err(finding) => findings.push(finding),
            }
        }
    }
    if let Some(remark) = sizes.remark() {
        println!("tidy: {remark}");
    }
    findings.extend(owners::check(packages));
    findings.extend(checklists::check(&sources));
    findings.extend(links::check(&sources));
    let report = |place: String| {
        if options.ratchets {
            println!("{place}");
        }
    };
    let counted = [prose::counted(&sources, report), shape::count(&sources, report)].concat();
    findings.extend(ratchets::check(&sources, &counted)?);
    let text = |path| sources.iter().find(|source| source.path == path);
    match text(ARCHITECTURE) {
        Some(source) => {
            findings.extend(edges::check(source, packages));
            findings.extend(layers::check(source, &sources));
            findings.extend(crates::check_list(source, packages));
        }
        None => findings.push(Finding::new(ARCHITECTURE, "is missing")),
    }
    match text(REQUIREMENTS) {
        Some(source) => {
            findings.extend(requirements::check(source, &sources));
            let security = text(SECURITY);
            findings
                .extend(security.map(|of| requirements::not_yet(source, of)).unwrap_or_default());
        }
        None => findings.push(Finding::new(REQUIREMENTS, "is missing")),
    }
    Ok(findings)
}

/// Every text file that is or may become part of the repository.
fn sources(root: &Path) -> Result<Vec<Source>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output()
        .context("cannot run git")?;
    ensure!(output.status.success(), "git ls-files ended with {}", output.status);
    let listed = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    let mut sources = Vec::new();
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let file = root.join(path);
        // A file may be deleted but not yet committed so; binary files have no style.
        if let Some(text) = file.is_file().then(|| fs_err::read(&file)).transpose()?
            && let Ok(text) = String::from_utf8(text)
        {
            sources.push(Source { path: path.to_owned(), text });
        }
    }
    Ok(sources)
}
