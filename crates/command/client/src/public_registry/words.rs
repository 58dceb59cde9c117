//! Words of descriptions that become words of commands: the forms that are accepted.

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

/// True for a name of an environment variable.
pub(super) fn is_variable(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
