//! Packages that runners such as `npx` and `uvx` download and start, and whether their version is
//! fixed (S5).

use std::{borrow::Cow, fmt};

/// The registry of a package, which decides the form of a fixed version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ecosystem {
    Npm,
    Python,
}

/// A runner of packages: the words that start it, and how its arguments are read.
struct Runner {
    words: &'static [&'static str],
    ecosystem: Ecosystem,
    /// Flags whose value is a package to download, in the place of the first word or beside it.
    packages: &'static [&'static str],
    /// True if a package of a flag leaves the first word to be the name of a command.
    is_instead: bool,
    /// Other flags that take a value.
    valued: &'static [&'static str],
}

const NPM_VALUED: &[&str] = &["-c", "--call", "-w", "--workspace", "--registry", "--cache"];
const UV_VALUED: &[&str] = &[
    "-p",
    "--python",
    "--with-editable",
    "--with-requirements",
    "-c",
    "--constraints",
    "-b",
    "--build-constraints",
    "--overrides",
    "--env-file",
    "-i",
    "--index-url",
    "--index",
    "--default-index",
    "--extra-index-url",
    "-f",
    "--find-links",
    "--index-strategy",
    "--keyring-provider",
    "-P",
    "--upgrade-package",
    "--resolution",
    "--prerelease",
    "--exclude-newer",
    "--refresh-package",
    "--link-mode",
    "--cache-dir",
    "--directory",
    "--project",
    "--config-file",
    "--color",
    "--allow-insecure-host",
];
const PIPX_VALUED: &[&str] =
    &["--python", "-i", "--index-url", "--pip-args", "--backend", "--path"];

const fn npm(words: &'static [&'static str]) -> Runner {
    let (packages, valued) = (&["-p", "--package"], NPM_VALUED);
    Runner { words, ecosystem: Ecosystem::Npm, packages, is_instead: true, valued }
}

const fn uv(words: &'static [&'static str]) -> Runner {
    let (packages, valued) = (&["--from", "--with", "-w"], UV_VALUED);
    Runner { words, ecosystem: Ecosystem::Python, packages, is_instead: false, valued }
}

const RUNNERS: [Runner; 13] = [
    npm(&["npx"]),
    npm(&["npm", "exec"]),
    npm(&["npm", "x"]),
    npm(&["pnpm", "dlx"]),
    npm(&["pnpx"]),
    npm(&["yarn", "dlx"]),
    npm(&["bunx"]),
    npm(&["bun", "x"]),
    uv(&["uvx"]),
    uv(&["uv", "tool", "run"]),
    uv(&["uv", "x"]),
    Runner {
        words: &["pipx", "run"],
        ecosystem: Ecosystem::Python,
        packages: &["--spec"],
        is_instead: true,
        valued: PIPX_VALUED,
    },
    Runner {
        words: &["python", "-m", "pipx", "run"],
        ecosystem: Ecosystem::Python,
        packages: &["--spec"],
        is_instead: true,
        valued: PIPX_VALUED,
    },
];

/// The sentence of a package of npm that its registry does not have.
#[must_use]
pub fn absent_package(name: &str) -> String {
    format!("the package `{name}` does not exist in the npm registry")
}

/// A package of which a runner may start another version each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpinnedPackage {
    /// The package as it is written, such as `@scope/server@latest`.
    pub spec: String,
    /// The word to write instead of it, with `VERSION` in the place of a version that is not known
    /// here.
    pub pin: String,
    /// The command that prints versions to choose from.
    pub find: String,
    /// The name in the registry of npm, where it is one.
    pub npm_name: Option<String>,
}

impl UnpinnedPackage {
    /// The package with a version that is known to be installed.
    #[must_use]
    pub fn with_version(&self, version: &str) -> Self {
        Self { pin: self.pin.replace("VERSION", version), ..self.clone() }
    }
}

impl fmt::Display for UnpinnedPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { spec, pin, find, .. } = self;
        write!(
            f,
            "`{spec}` has no fixed version, so each start may run other code: write `{pin}`"
        )?;
        if pin.contains("VERSION") {
            write!(f, "; `{find}` prints the newest version")?;
        }
        Ok(())
    }
}

/// The packages without a fixed version that a command downloads and starts; none for a command
/// that is no known runner.
///
/// A word with a placeholder in it counts as fixed: its value is not known here.
#[must_use]
pub fn unpinned(command: &str, args: &[impl AsRef<str>]) -> Vec<UnpinnedPackage> {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.trim_end_matches(".cmd").trim_end_matches(".exe").trim_end_matches(".ps1");
    let name = if name.starts_with("python3") { "python" } else { name };
    let args: Vec<_> = args.iter().map(AsRef::as_ref).collect();
    match (name, &args[..]) {
        ("sh" | "bash" | "dash" | "zsh" | "ash", ["-c" | "-lc" | "-ec", line, ..]) => {
            let words: Vec<_> = line.split_whitespace().map(unquoted).collect();
            of_line(&words)
        }
        ("cmd", ["/c" | "/C", rest @ ..]) => of_line(rest),
        ("env", rest) => of_line(rest),
        _ => of_runner(name, &args),
    }
}

fn unquoted(word: &str) -> &str {
    word.trim_matches(['\'', '"', ';', '&', '|', '(', ')'])
}

/// The packages of the first runner in the words of a line.
fn of_line(words: &[&str]) -> Vec<UnpinnedPackage> {
    let starts = |word: &&str| RUNNERS.iter().any(|runner| runner.words[0] == *word);
    match words.iter().position(starts) {
        Some(at) => of_runner(words[at], &words[at + 1..]),
        None => Vec::new(),
    }
}

fn of_runner(name: &str, args: &[&str]) -> Vec<UnpinnedPackage> {
    let is_it = |runner: &&Runner| runner.words[0] == name && args.starts_with(&runner.words[1..]);
    let Some(runner) = RUNNERS.iter().find(is_it) else { return Vec::new() };
    let specs = specs(runner, &args[runner.words.len() - 1..]);
    specs.into_iter().filter_map(|spec| runner.ecosystem.unpinned(spec)).collect()
}

/// The packages that a runner downloads: those of flags, and the first word unless it is a command
/// of theirs.
fn specs<'a>(runner: &Runner, args: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut is_named = false;
    let mut args = args.iter().copied();
    while let Some(word) = args.next() {
        if word == "--" {
            found.extend(args.next().filter(|_| !is_named));
            break;
        }
        if !word.starts_with('-') {
            found.extend((!is_named).then_some(word));
            break;
        }
        let (flag, value) =
            word.split_once('=').map_or((word, None), |(flag, value)| (flag, Some(value)));
        let is_package = runner.packages.contains(&flag);
        let value = match value {
            None if is_package || runner.valued.contains(&flag) => args.next(),
            value => value,
        };
        if is_package {
            found.extend(value);
            is_named |= runner.is_instead || flag == "--from";
        }
        // A command line for a shell is no package.
        is_named |= matches!(flag, "-c" | "--call") && runner.ecosystem == Ecosystem::Npm;
    }
    found
}

impl Ecosystem {
    fn unpinned(self, spec: &str) -> Option<UnpinnedPackage> {
        let spec = unquoted(spec);
        let is_local = spec.is_empty()
            || spec.starts_with(['.', '/', '~'])
            || spec.starts_with("file:")
            || spec.contains("${");
        if is_local {
            return None;
        }
        if is_address(spec) {
            return address(spec);
        }
        match self {
            Self::Npm => npm_package(spec),
            Self::Python => python_package(spec),
        }
    }
}

/// True if a word names a place to download from, and no package of a registry.
fn is_address(spec: &str) -> bool {
    let is_short = || spec.contains('/') && !spec.starts_with('@');
    spec.contains("://") || spec.starts_with("git+") || spec.starts_with("github:") || is_short()
}

/// A place is fixed by the hash of a commit.
fn address(spec: &str) -> Option<UnpinnedPackage> {
    let shown = without_credential(spec);
    let spec = &*shown;
    let is_commit = |part: &str| {
        let digits = part.split('&').next().unwrap_or_default();
        digits.len() >= 40 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if spec.rsplit(['#', '@']).next().is_some_and(is_commit) {
        return None;
    }
    let (base, sign) = match (spec.split_once('#'), spec.rsplit_once(".git@")) {
        (Some((base, _)), _) => (base.to_owned(), '#'),
        (None, Some((base, _))) => (format!("{base}.git"), '@'),
        (None, None) if spec.starts_with("git+") => (spec.to_owned(), '@'),
        (None, None) => (spec.to_owned(), '#'),
    };
    let place = base.trim_start_matches("git+");
    Some(UnpinnedPackage {
        spec: spec.to_owned(),
        pin: format!("{base}{sign}VERSION"),
        find: format!("git ls-remote {place} HEAD"),
        npm_name: None,
    })
}

/// An address without what may be a user and a password in it.
fn without_credential(spec: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = spec.split_once("://") else { return spec.into() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{host}{}", &rest[end..]).into(),
        None => spec.into(),
    }
}

/// `name@version`, where the version is a whole one.
fn npm_package(spec: &str) -> Option<UnpinnedPackage> {
    let spec_of = spec.strip_prefix("npm:").unwrap_or(spec);
    // An alias names the package behind it.
    let spec_of = spec_of.split_once("@npm:").map_or(spec_of, |(_, behind)| behind);
    let (name, version) = match spec_of[1..].rfind('@') {
        Some(at) => (&spec_of[..=at], Some(&spec_of[at + 2..])),
        None => (spec_of, None),
    };
    if version.is_some_and(is_semver) {
        return None;
    }
    Some(UnpinnedPackage {
        spec: spec.to_owned(),
        pin: format!("{name}@VERSION"),
        find: format!("npm view {name} version"),
        npm_name: Some(name.to_owned()),
    })
}

fn is_semver(version: &str) -> bool {
    let version = version.trim_start_matches(['v', '=']);
    let core = version.split(['-', '+']).next().unwrap_or_default();
    let parts: Vec<_> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(is_number) && !version.contains([' ', '|'])
}

/// `name==version`, or `name@version` as `uvx` has it.
fn python_package(spec: &str) -> Option<UnpinnedPackage> {
    let end = spec.find(['=', '<', '>', '~', '!', '@', ';', ' ']).unwrap_or(spec.len());
    let (name, version) = spec.split_at(end);
    let exact = version.strip_prefix("===").or_else(|| version.strip_prefix("=="));
    let exact = exact.or_else(|| version.strip_prefix('@')).map(str::trim);
    let is_exact = |version: &str| {
        let begins = version.starts_with(|c: char| c.is_ascii_digit());
        begins && !version.contains(['*', ',', '<', '>', '~'])
    };
    if exact.is_some_and(is_exact) {
        return None;
    }
    let plain = name.split('[').next().unwrap_or(name);
    Some(UnpinnedPackage {
        spec: spec.to_owned(),
        pin: format!("{name}==VERSION"),
        find: format!("pip index versions {plain}"),
        npm_name: None,
    })
}

#[cfg(test)]
mod tests;
