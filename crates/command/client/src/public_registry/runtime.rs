//! The words in front of a package. A runner reads options and other packages there, so a
//! description may have few of them, and none that replaces the package or opens the machine.

use std::path::Path;

use narthex_model::{command::narthex, written::is_variable_name};

use super::{
    compose::as_read,
    inputs::Folders,
    slot::{Place, Slot, WayKind},
};

/// Folders that no container gets, nor a part of them.
const CLOSED: [&str; 18] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/host_mnt",
    "/lib",
    "/library",
    "/private/etc",
    "/private/var/run",
    "/proc",
    "/run",
    "/sbin",
    "/sys",
    "/system",
    "/usr",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/run",
];
/// Folders that no container gets as a whole.
const CLOSED_WHOLE: [&str; 8] =
    ["/home", "/lib64", "/private", "/private/var", "/root", "/users", "/var", "/var/lib"];
/// The text in the place of a reference of the user.
const REFERENCE: &str = "/_";

type Words = &'static [&'static str];

/// The words of a kind in front of the package.
struct Allowed {
    /// The words that narthex writes itself.
    own: Words,
    /// Options without a value.
    switches: Words,
    /// Options with a value.
    options: Words,
}

impl Allowed {
    fn of(kind: WayKind) -> Self {
        let (own, switches, options): (Words, Words, Words) = match kind {
            WayKind::Npm => (&["-y", "--yes"], &["-q", "--quiet"], &[]),
            WayKind::Pypi => (&[], &["-q", "--quiet", "--no-progress"], &[]),
            WayKind::Oci => (
                &["run", "-i", "--interactive", "--rm"],
                &[],
                &["--mount", "-v", "--volume", "--network"],
            ),
            WayKind::Mcpb | WayKind::Http | WayKind::Sse => (&[], &[], &[]),
        };
        Self { own, switches, options }
    }

    /// The accepted words for people.
    fn words(&self, kind: WayKind) -> String {
        let mut all = [self.own, self.switches, self.options].concat();
        if kind == WayKind::Oci {
            all.push("-e NAME=VALUE");
        }
        match all.is_empty() {
            true => "none".to_owned(),
            false => format!("`{}`", all.join("`, `")),
        }
    }
}

/// Checks the words in front of a package, and removes those that narthex writes itself.
///
/// # Errors
/// The reason for the first word that is not accepted, as a sentence without its subject.
pub(super) fn checked(kind: WayKind, slots: &mut Vec<Slot>) -> Result<(), String> {
    let allowed = Allowed::of(kind);
    if kind == WayKind::Oci {
        slots.iter_mut().for_each(to_variable);
    }
    let mut fault = None;
    slots.retain(|slot| {
        let (word, is_own, is_allowed) = match &slot.place {
            Place::Word { name, is_first: true } => {
                let word = slot.input.value.as_deref().unwrap_or(name);
                let is_fixed = slot.input.value.is_some();
                let is_own = is_fixed && allowed.own.contains(&word);
                (word, is_own, is_fixed && allowed.switches.contains(&word))
            }
            Place::Flag { name, is_first: true } => {
                let (word, fixed) = (name.as_str(), slot.input.value.as_deref());
                // A value would be the next word, where the runner looks for the package.
                let is_alone = fixed == Some("");
                let is_switch = is_alone && allowed.switches.contains(&word);
                let is_option = !is_alone && allowed.options.contains(&word);
                let is_own = fixed.is_none_or(str::is_empty) && allowed.own.contains(&word);
                (word, is_own, is_switch || is_option)
            }
            _ => return true,
        };
        if !is_own && !is_allowed && fault.is_none() {
            let add = narthex("mcp add NAME -- COMMAND", &[]);
            fault = Some(format!(
                "has `{word}` in front of its package, which could run other code or open this \
                 machine to it (accepted there: {}); if you trust it, add its command with `{add}`",
                allowed.words(kind)
            ));
        }
        !is_own
    });
    fault.map_or(Ok(()), Err)
}

/// Makes a variable of `-e NAME=value`, so that a secret in the value stays out of the command.
fn to_variable(slot: &mut Slot) {
    let Place::Flag { name, is_first: true } = &slot.place else { return };
    if !matches!(name.as_str(), "-e" | "--env") {
        return;
    }
    let Some((name, value)) = slot.input.value.as_deref().and_then(|text| text.split_once('='))
    else {
        return;
    };
    let (name, value) = (name.to_owned(), value.to_owned());
    if is_variable_name(&name) {
        slot.input.value = Some(value);
        slot.place = Place::Env(name);
        slot.is_repeated = false;
    }
}

/// Checks the value of an option in front of an image, as it is written to the file.
///
/// # Errors
/// The rule that the value breaks, as the end of a sentence.
pub(super) fn opens(flag: &str, text: &str, folders: &Folders) -> Result<(), String> {
    let text = as_read(text, REFERENCE);
    if text.is_empty() {
        return Err("needs a value, or else the image would be read as it".to_owned());
    }
    match flag {
        "--mount" => mount(&text, folders),
        "-v" | "--volume" => volume(&text, folders),
        _ => Ok(()),
    }
}

fn mount(text: &str, folders: &Folders) -> Result<(), String> {
    if text.contains('"') {
        return Err("has `\"`, behind which a path could hide".to_owned());
    }
    for part in text.split(',') {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key.to_ascii_lowercase().as_str() {
            "type" => match value.to_ascii_lowercase().as_str() {
                "bind" | "volume" | "tmpfs" => {}
                _ => return Err(format!("has the type `{value}`; use bind, volume or tmpfs")),
            },
            "source" | "src" => source(value, folders)?,
            "target" | "dst" | "destination" | "readonly" | "ro" => {}
            _ => return Err(format!("has `{key}`; use type, src, dst and readonly alone")),
        }
    }
    Ok(())
}

fn volume(text: &str, folders: &Folders) -> Result<(), String> {
    match text.split(':').collect::<Vec<_>>().as_slice() {
        // A volume without a name.
        [_] => Ok(()),
        [from, _] => source(from, folders),
        [from, _, modes] => {
            match modes.split(',').find(|mode| !matches!(*mode, "ro" | "rw" | "z" | "Z")) {
                Some(mode) => Err(format!("has the mode `{mode}`; use ro, rw, z and Z alone")),
                None => source(from, folders),
            }
        }
        _ => Err("has more than three parts; write FROM:TO, or FROM:TO:ro".to_owned()),
    }
}

/// Checks the folder of this machine, or the name of a volume, that a container gets.
fn source(from: &str, folders: &Folders) -> Result<(), String> {
    let is_name = from.starts_with(|c: char| c.is_ascii_alphanumeric())
        && from.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
    if is_name {
        return Ok(());
    }
    if !from.starts_with('/') || from.split('/').any(|part| part == "..") {
        return Err(format!("has `{from}`, which is neither an absolute path nor a volume"));
    }
    let parts = from.split('/').filter(|part| !matches!(*part, "" | "."));
    let path: String = parts.flat_map(|part| ["/", part]).collect();
    let small = path.to_lowercase();
    let has_home = folders.home.as_deref().is_some_and(|home| home.starts_with(Path::new(&path)));
    let is_closed = path.is_empty()
        || has_home
        || CLOSED.iter().any(|folder| Path::new(&small).starts_with(folder))
        || CLOSED_WHOLE.contains(&small.as_str());
    if is_closed || small.ends_with(".sock") {
        return Err(format!(
            "would give the container `{from}` of this machine; choose a folder with the \
             server's own files"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
