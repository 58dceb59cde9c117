//! Words of descriptions that become words of commands: the forms that are accepted.

use narthex_model::written::is_variable_name;

/// A name of a package of npm. A name with `/` outside of a scope would be a repository for `npx`.
pub(super) fn npm_name(text: &str) -> Result<&str, String> {
    let is_part = |part: &str| is_plain(part, "._-~");
    let is_name = match text.strip_prefix('@') {
        Some(scoped) => {
            scoped.split_once('/').is_some_and(|(scope, name)| is_part(scope) && is_part(name))
        }
        None => is_part(text),
    };
    if is_name { Ok(text) } else { Err(misnamed(text, "a package")) }
}

/// A name of a package of `PyPI`.
pub(super) fn pypi_name(text: &str) -> Result<&str, String> {
    if is_plain(text, "._-") { Ok(text) } else { Err(misnamed(text, "a package")) }
}

/// A reference of an image.
pub(super) fn image(text: &str) -> Result<&str, String> {
    if is_plain(text, "._-/:@") { Ok(text) } else { Err(misnamed(text, "an image")) }
}

/// True for letters, digits and these signs, with a first character that no runner reads as the
/// start of an option or a path.
fn is_plain(text: &str, signs: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || signs.contains(c))
        && !text.contains("..")
}

fn misnamed(text: &str, what: &str) -> String {
    format!("names `{text}`, which is not {what}")
}

/// Exactly one version: no range, no word such as `latest`.
pub(super) fn one_version(version: Option<&str>) -> Result<&str, String> {
    let Some(version) = version else {
        return Err("has no version, so each start could run other code".to_owned());
    };
    let is_one = version.starts_with(|c: char| c.is_ascii_alphanumeric())
        && version.bytes().any(|byte| byte.is_ascii_digit())
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'+' | b'_' | b'!'));
    let is_range = version.split('.').any(|part| matches!(part, "x" | "X" | "*"));
    match is_one && !is_range {
        true => Ok(version),
        false => Err(format!("has `{version}` for a version, which is not exactly one")),
    }
}

/// Exactly one version of a package of npm, which reads `1` and `1.2` as ranges.
pub(super) fn npm_version(version: Option<&str>) -> Result<&str, String> {
    let version = one_version(version)?;
    match semver::Version::parse(version) {
        Ok(_) => Ok(version),
        Err(_) => Err(format!(
            "has `{version}` for a version, which is not exactly one: npm needs three numbers, \
             such as 1.4.0"
        )),
    }
}

/// Beginnings of variables, in small letters, by which runners take packages from elsewhere.
const RUNNER_PREFIXES: [&str; 8] =
    ["npm_config_", "uv_", "pip_", "docker_", "container_", "containers_", "buildah_", "narthex_"];
/// Variables, in small letters, that change where programs connect to and whom they trust.
const RUNNER_NAMES: [&str; 9] = [
    "curl_ca_bundle",
    "node_extra_ca_certs",
    "node_tls_reject_unauthorized",
    "registry_auth_file",
    "requests_ca_bundle",
    "ssl_cert_dir",
    "ssl_cert_file",
    "xdg_config_home",
    "xdg_runtime_dir",
];

/// Checks the name of a variable that a description sets.
///
/// # Errors
/// The rule that the name breaks, as the end of a sentence.
pub(super) fn variable(name: &str) -> Result<(), &'static str> {
    if !is_variable_name(name) {
        return Err("is not a name of a variable");
    }
    let small = name.to_ascii_lowercase();
    let steers = narthex_model::variable::steers_programs(name)
        || RUNNER_PREFIXES.iter().any(|prefix| small.starts_with(prefix))
        || RUNNER_NAMES.contains(&small.as_str())
        || small.ends_with("_proxy");
    match steers {
        true => Err("changes which code runs or whom it trusts, so no description may set it"),
        false => Ok(()),
    }
}

/// Checks the name of a header.
pub(super) fn header(name: &str) -> Result<(), String> {
    match narthex_model::header::is_name(name) {
        true => Ok(()),
        false => Err(format!("has the header `{name}`, which is not a name of a header")),
    }
}

/// The registry of packages, if it is not the usual one: the host of `usual` below `.org`.
pub(super) fn other_index<'p>(
    named: Option<&'p str>,
    usual: &str,
) -> Result<Option<&'p str>, String> {
    let Some(text) = named.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let wrong = || format!("comes from `{text}`, which is not a plain address of https");
    let url = url::Url::parse(text).map_err(|_wrong| wrong())?;
    let labels: Vec<_> = url.host_str().into_iter().flat_map(|host| host.rsplit('.')).collect();
    let is_usual = matches!(labels.as_slice(), ["org", name, ..] if *name == usual);
    // npm fills in `${NAME}` in its options itself.
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~:/%[]".contains(&b));
    match url.scheme() == "https" && is_plain {
        true => Ok((!is_usual).then(|| text.trim_end_matches('/'))),
        false => Err(wrong()),
    }
}
