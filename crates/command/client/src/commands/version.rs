//! `narthex version`: the version of this program, and on demand the newest one.
//!
//! Sends one request to one address, and only with `--check`.

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use http::StatusCode;
use narthex_http_client::{ClientError, ClientSettings, HttpClient, Proxies};
use narthex_model::{ErrorKind, command::narthex, with_causes};
use semver::Version;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;
use url::Url;

use super::waiting::waiting;
use crate::{
    Context, DaemonOptions, Failure,
    cli::VersionArgs,
    environment::{user_folder, variable},
    output::{self, harmless},
    settings_files::SETTINGS_FILE,
    web::{get, is_reachable, without_query},
};

const OWN: &str = env!("CARGO_PKG_VERSION");
/// The address of the source repository, from which the address of releases follows; empty if the
/// build names none.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");
/// The form of an address of releases, for messages.
const EXAMPLE: &str = "https://api.github.com/repos/OWNER/NAME/releases/latest";
/// Longest time for the answer.
const ANSWER_TIME: Duration = Duration::from_secs(20);
/// Longest answer, in bytes.
const ANSWER_MAX: usize = 4 * 1024 * 1024;
/// The list of the files that Debian's package of narthex installed.
const DEBIAN: &str = "/var/lib/dpkg/info/narthex.list";

/// The address of the newest release, and the way to it.
#[derive(Debug, Clone, Default)]
pub struct ReleaseSettings {
    /// The address; `None` for that of the build.
    pub url: Option<String>,
    /// The variable or setting that gave the address, for messages.
    pub source: String,
    pub proxies: Arc<Proxies>,
}

/// A release, in the form of the API of GitHub.
#[derive(Debug, Deserialize)]
struct Release {
    tag_name: String,
    #[serde(default)]
    html_url: Option<String>,
}

/// The newest version.
#[derive(Debug)]
struct Newest {
    version: Version,
    /// The page about it.
    page: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// When `--check` is given, and the newest version cannot be found out.
pub async fn run(
    args: VersionArgs,
    context: Context,
    settings: ReleaseSettings,
) -> Result<ExitCode, Failure> {
    let newest = match args.check {
        true => Some(Box::pin(newest(&settings, &context)).await?),
        false => None,
    };
    let own = own()?;
    let program = std::env::current_exe().unwrap_or_default();
    let update = update(&program, Path::new(DEBIAN).exists());
    let is_newer = newest.as_ref().is_some_and(|newest| newest.version > own);
    let mut data = json!({
        "version": OWN,
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "program": program.to_string_lossy(),
    });
    if let Some(newest) = &newest {
        data["newest"] = json!({
            "version": newest.version.to_string(), "page": newest.page, "is_newer": is_newer,
        });
        data["update"] = if is_newer { json!(update) } else { Value::Null };
    }
    if context.format.is_quiet() {
        let version = newest.map_or_else(|| OWN.to_owned(), |newest| newest.version.to_string());
        output::line(&version)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (system, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let mut lines =
        vec![format!("narthex {OWN} ({system}, {architecture}): {}", program.display())];
    lines.extend(newest.iter().map(|newest| compared(newest, &own)));
    if is_newer {
        let restart = narthex("daemon restart", &[]);
        lines.push(format!("to update: {update}; then `{restart}`"));
    }
    output::told_lines(&data, &lines, context.format)
}

fn own() -> Result<Version, Failure> {
    Version::parse(OWN).map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))
}

/// The sentence about the newest version.
fn compared(newest: &Newest, own: &Version) -> String {
    let Newest { version, page } = newest;
    let page = page.as_deref().map(|page| format!(": {}", harmless(page))).unwrap_or_default();
    match version.cmp(own) {
        std::cmp::Ordering::Greater => format!("{version} is newer{page}"),
        std::cmp::Ordering::Equal => "this is the newest version".to_owned(),
        std::cmp::Ordering::Less => format!("the newest release is {version}, which is older"),
    }
}

/// The way to a newer program, by the place of this one.
fn update(program: &Path, has_debian_package: bool) -> &'static str {
    let has = |name: &str| program.components().any(|part| part.as_os_str() == name);
    if has("node_modules") {
        "`npm install --global narthex@latest`"
    } else if has("Cellar") || has("linuxbrew") {
        "`brew upgrade narthex`"
    } else if has("uv") && has("tools") {
        "`uv tool upgrade narthex`"
    } else if has("pipx") {
        "`pipx upgrade narthex`"
    } else if has(".cargo") {
        "`cargo install --locked --path crates/command/narthex` in the newer source code"
    } else if program.starts_with("/usr/bin") && has_debian_package {
        "`sudo apt install ./FILE.deb` with the package of the release"
    } else {
        "install the newer program in the way of this one"
    }
}

/// Asks for the newest version.
async fn newest(settings: &ReleaseSettings, context: &Context) -> Result<Newest, Failure> {
    let url = match &settings.url {
        Some(text) => given(text, &settings.source)?,
        None => of_repository(REPOSITORY).ok_or_else(|| unset(&context.daemon))?,
    };
    let asked = timeout(ANSWER_TIME, asked(&url, settings));
    let late = |_elapsed| {
        let reason = format!("no answer within {} s", ANSWER_TIME.as_secs());
        unknown(&url, ErrorKind::Timeout, &reason)
    };
    let waited = waiting(&format!("asking {}", without_query(&url)), context, asked).await;
    read(&waited.map_err(late)??, &url)
}

/// Reads the answer about the newest release.
fn read(answer: &[u8], url: &Url) -> Result<Newest, Failure> {
    let release: Release = serde_json::from_slice(answer).map_err(|error| {
        unknown(url, ErrorKind::Invalid, &format!("its answer has no release: {error}"))
    })?;
    let text = release.tag_name.trim_start_matches("narthex-").trim_start_matches('v');
    let version = Version::parse(text).map_err(|_other| {
        let reason = format!("its release is named `{}`, which is no version", release.tag_name);
        unknown(url, ErrorKind::Invalid, &reason)
    })?;
    Ok(Newest { version, page: release.html_url })
}

async fn asked(url: &Url, settings: &ReleaseSettings) -> Result<bytes::Bytes, Failure> {
    let failed = |error: ClientError| unknown(url, error.kind(), &with_causes(&error));
    let client = ClientSettings { proxies: settings.proxies.clone(), ..ClientSettings::default() };
    let client = HttpClient::new(url, client).map_err(failed)?;
    let request = get(url, "application/json")
        .map_err(|error| unknown(url, ErrorKind::Invalid, &format!("{error}")))?;
    let response = client.send(request).await.map_err(failed)?;
    match response.status {
        StatusCode::OK => response.body.collect(ANSWER_MAX).await.map_err(failed),
        status => Err(unknown(url, ErrorKind::Unavailable, &format!("it answered {status}"))),
    }
}

/// The address that a setting gives.
fn given(text: &str, source: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).ok().filter(is_reachable);
    url.ok_or_else(|| {
        Failure::usage(format!(
            "{source} `{text}` is not an address of https; write it like {EXAMPLE}"
        ))
    })
}

/// The failure of a build that names no repository, without the setting.
fn unset(options: &DaemonOptions) -> Failure {
    let usual = user_folder(&variable, "XDG_CONFIG_HOME", ".config");
    let usual = usual.map(|folder| folder.join("narthex").join(SETTINGS_FILE));
    let file = options.settings.clone().or(usual);
    let file = file.map_or_else(|| SETTINGS_FILE.to_owned(), |file| file.display().to_string());
    Failure::usage(format!(
        "the address of the newest release is not known: this build names none, and the setting \
         `releases` is not set; add the line `releases = \"{EXAMPLE}\"` to {file}, with the owner \
         and name of the repository, or give it once: `NARTHEX_RELEASES={EXAMPLE} {}`",
        narthex("version --check", &[])
    ))
}

/// The address of the newest release of a repository at GitHub.
fn of_repository(repository: &str) -> Option<Url> {
    let name = repository.strip_prefix("https://github.com/")?.trim_end_matches('/');
    let name = name.trim_end_matches(".git");
    Url::parse(&format!("https://api.github.com/repos/{name}/releases/latest")).ok()
}

fn unknown(url: &Url, kind: ErrorKind, reason: &str) -> Failure {
    let text = format!(
        "the newest version cannot be read from {}: {reason}; try again later, or look at the \
         releases yourself. Behind a proxy, set NARTHEX_PROXY_HTTPS",
        without_query(url)
    );
    Failure::new(kind, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_leads_to_its_newest_release() {
        let of = |text| of_repository(text).map(|url| url.to_string());
        let expected = "https://api.github.com/repos/ada/narthex/releases/latest";
        for text in ["https://github.com/ada/narthex", "https://github.com/ada/narthex.git"] {
            assert_eq!(of(text).as_deref(), Some(expected));
        }
        assert_eq!((of(""), of("https://git.example/x")), (None, None));
    }

    #[test]
    fn an_address_is_https_or_of_this_machine() {
        let of = |text: &str| given(text, "NARTHEX_RELEASES");
        assert!(of("https://a.example/x").is_ok() && of("http://127.0.0.1:1/x").is_ok());
        for text in ["http://a.example/x", "x", "file:///x"] {
            let message = of(text).unwrap_err().message;
            assert!(message.starts_with(&format!("NARTHEX_RELEASES `{text}`")), "{message}");
        }
    }

    #[test]
    fn versions_are_compared_by_their_order() {
        let url = Url::parse("https://a.example/x").unwrap();
        let own = Version::parse("0.9.0").unwrap();
        let told = |tag: &str| {
            let answer = json!({ "tag_name": tag, "html_url": "https://a.example/p" }).to_string();
            compared(&read(answer.as_bytes(), &url).unwrap(), &own)
        };
        assert_eq!(told("v0.10.0"), "0.10.0 is newer: https://a.example/p");
        assert_eq!(told("0.9.0"), "this is the newest version");
        assert_eq!(told("v0.9.0-rc.1"), "the newest release is 0.9.0-rc.1, which is older");
        for answer in ["{}", "x", r#"{"tag_name":"latest"}"#] {
            let failure = read(answer.as_bytes(), &url).unwrap_err();
            assert!(failure.message.contains("try again later"), "{failure}");
        }
    }

    #[test]
    fn the_way_to_update_follows_from_the_place_of_the_program() {
        let of = |path: &str| update(Path::new(path), true);
        let table = [
            ("/usr/lib/node_modules/narthex-linux-x64/narthex", "npm"),
            ("/home/linuxbrew/.linuxbrew/Cellar/narthex/1/bin/narthex", "brew"),
            ("/home/ada/.local/share/uv/tools/narthex/bin/narthex", "uv tool"),
            ("/home/ada/.local/share/pipx/venvs/narthex/bin/narthex", "pipx"),
            ("/home/ada/.cargo/bin/narthex", "cargo"),
            ("/usr/bin/narthex", "apt"),
            ("/opt/narthex", "in the way of this one"),
        ];
        for (path, way) in table {
            assert!(of(path).contains(way), "{path}");
        }
        assert!(!update(Path::new("/usr/bin/narthex"), false).contains("apt"));
    }
}
