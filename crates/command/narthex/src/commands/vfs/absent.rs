//! The failure of a path that leads nowhere, with the names that exist and the next command.

use std::borrow::Cow;

use narthex_model::{
    ErrorKind,
    command::{CommandLine, narthex},
    near,
};
use narthex_vfs::{Code, Node, Place, ROOT};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::request::{look, whole};
use crate::{Failure, daemon_client::DaemonClient, output::harmless};

/// Number of names that a failure shows if none is like the given one.
const SHOWN: usize = 10;

/// A directory, and the name that was not found in it.
struct Wanted {
    /// The path of the directory.
    directory: String,
    /// The name, as the directory lists it.
    name: String,
    /// The kind of the names, for a sentence.
    what: &'static str,
}

/// The names of a directory, as a person types them.
struct Listed {
    wanted: Wanted,
    names: Vec<String>,
}

/// A failure with the names that exist, if the path leads nowhere, and with the command to go on
/// with. Each other failure stays as it is.
pub(super) async fn told(failure: Failure, path: &str, client: &DaemonClient) -> Failure {
    let code = failure.problem_code.as_deref().and_then(Code::parse);
    let path = whole(path);
    let place = Place::parse(&path);
    match (code, &place) {
        (Some(Code::NotFound), _) => match listed(&place, client).await {
            Some(listed) => with_names(failure, &listed),
            None => failure,
        },
        // The namespace asks no server before a tool is written to.
        (Some(Code::Invalid), Ok(Place::In(_, Node::Tool(_)))) => {
            match listed(&place, client).await {
                Some(listed) if !listed.has_wanted() => no_tool(&listed),
                _ => with_call(failure, &path),
            }
        }
        _ => failure,
    }
}

/// The nearest directory of the place that exists, and its names. `None` if not even the mounts
/// can be listed.
async fn listed(
    place: &Result<Place, narthex_vfs::Failure>,
    client: &DaemonClient,
) -> Option<Listed> {
    if let Ok(Place::In(_, node)) = place
        && let Some(wanted) = wanted(place)
        && let Some(names) = names(&wanted.directory, client).await
    {
        let is_listed = |name: &String| match node {
            // Each tool has three files, and people look for the tool.
            Node::Tool(_) | Node::Schema(_) | Node::Description(_) => {
                matches!(Node::of_tool_file(name), Node::Tool(_))
            }
            _ => true,
        };
        return Some(Listed { wanted, names: names.into_iter().filter(is_listed).collect() });
    }
    let name = match place {
        Ok(Place::In(mount, _)) => mount.to_string(),
        Ok(Place::Mounts) | Err(_) => String::new(),
    };
    let names = names(ROOT, client).await?;
    Some(Listed { wanted: Wanted { directory: ROOT.to_owned(), name, what: "mount" }, names })
}

/// The directory of a file, and the name of the file there.
fn wanted(place: &Result<Place, narthex_vfs::Failure>) -> Option<Wanted> {
    let Ok(Place::In(mount, node)) = place else { return None };
    let (node, what) = match node {
        Node::Tool(tool) | Node::Schema(tool) | Node::Description(tool) => {
            (Node::Tool(tool.clone()), "tool")
        }
        Node::Prompt(_) => (node.clone(), "prompt"),
        Node::Resource(_) => (node.clone(), "resource"),
        _ => return None,
    };
    let file = node.sub_path();
    let (folder, name) = file.strip_prefix('/')?.split_once('/')?;
    let directory = format!("{}/{folder}", mount.path());
    Some(Wanted { directory, name: name.to_owned(), what })
}

/// The names of a directory. `None` if it cannot be listed.
async fn names(directory: &str, client: &DaemonClient) -> Option<Vec<String>> {
    let listed = client.api(look(directory, "list")).await.ok()?;
    let name = |entry: &Value| {
        let name = entry["name"].as_str()?;
        // A URI in a path is not encoded; only in folders it is.
        let name = match directory.ends_with("/resources") {
            true => percent_decode_str(name).decode_utf8_lossy(),
            false => Cow::Borrowed(name),
        };
        Some(name.into_owned())
    };
    Some(listed["entries"].as_array()?.iter().filter_map(name).collect())
}

impl Listed {
    /// True if the directory has the name.
    fn has_wanted(&self) -> bool {
        self.names.contains(&self.wanted.name)
    }

    /// The names that may have been meant, or else the first ones, and the command that lists all.
    fn hint(&self) -> String {
        let Wanted { directory, name, what } = &self.wanted;
        let known = self.names.iter().map(String::as_str);
        let meant = near(name, known.clone());
        let list = shown_by(directory);
        let told = match (meant.as_slice(), self.names.len()) {
            (_, 0) => format!("there is no {what} here yet;"),
            ([], count) => {
                let first: Vec<_> = known.take(SHOWN).map(harmless).collect();
                let more = count.saturating_sub(SHOWN);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                format!("the {what}s here are {}{more};", first.join(", "))
            }
            (meant, _) => {
                let meant: Vec<_> = meant.iter().map(|name| harmless(name)).collect();
                format!("did you mean {}?", meant.join(", "))
            }
        };
        format!("{told} `{list}` lists all")
    }
}

/// The command that lists a directory.
fn shown_by(directory: &str) -> CommandLine {
    match directory.strip_prefix(ROOT).map(|below| below.trim_start_matches('/')) {
        Some("") | None => narthex("vfs ls", &[]),
        Some(below) => narthex("vfs ls {}", &[&below]),
    }
}

fn with_names(failure: Failure, listed: &Listed) -> Failure {
    let message = format!("{}; {}", failure.message.trim_end_matches('.'), listed.hint());
    Failure { message, ..failure }
}

/// The failure for a tool that its server does not list.
fn no_tool(listed: &Listed) -> Failure {
    let Wanted { directory, name, .. } = &listed.wanted;
    let name = harmless(name);
    let text = format!("there is no tool `{name}` in {directory}; {}", listed.hint());
    Failure::new(ErrorKind::NotFound, text)
}

/// The failure for a tool that was read before it was called.
fn with_call(failure: Failure, path: &str) -> Failure {
    let below = path.strip_prefix(ROOT).map_or(path, |below| below.trim_start_matches('/'));
    let call = narthex("vfs call {} KEY=VALUE", &[&below]);
    let message = format!("{}; call it with `{call}`", failure.message);
    Failure { message, ..failure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(path: &str, names: &[&str]) -> Listed {
        let wanted = wanted(&Place::parse(path)).unwrap();
        Listed { wanted, names: names.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn a_tool_that_is_absent_is_told_the_tools_and_the_command_that_lists_them() {
        let near = listed("/mnt/mcp/0-demo/tools/ehco.md", &["echo", "sleep"]);
        assert!(!near.has_wanted());
        let told = no_tool(&near).message;
        assert_eq!(
            told,
            "there is no tool `ehco` in /mnt/mcp/0-demo/tools; did you mean echo? `narthex vfs ls \
             0-demo/tools` lists all"
        );
        let names: Vec<_> = (0..12).map(|number| format!("tool{number}")).collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        let far = listed("/mnt/mcp/0-demo/tools/zzzzzzzzz", &names).hint();
        assert!(far.starts_with("the tools here are tool0, tool1, "), "{far}");
        assert!(far.contains("tool9 and 2 more; `narthex vfs ls 0-demo/tools`"), "{far}");
        let none = listed("/mnt/mcp/0-demo/prompts/x", &[]).hint();
        assert!(none.starts_with("there is no prompt here yet; `narthex vfs ls 0-demo/prompts`"));
        assert!(listed("/mnt/mcp/0-demo/tools/echo", &["echo"]).has_wanted());
    }

    #[test]
    fn an_unknown_mount_is_told_the_mounts() {
        let directory = ROOT.to_owned();
        let wanted = Wanted { directory, name: "2-demo".to_owned(), what: "mount" };
        let names = vec!["0-git".to_owned(), "0-narthex".to_owned()];
        let listed = Listed { wanted, names };
        let failure = with_names(Failure::new(ErrorKind::NotFound, "nothing is there"), &listed);
        assert_eq!(
            failure.message,
            "nothing is there; the mounts here are 0-git, 0-narthex; `narthex vfs ls` lists all"
        );
    }

    #[test]
    fn a_tool_that_is_read_before_its_call_is_told_the_call() {
        let failure = Failure::new(ErrorKind::Invalid, "write the arguments first");
        let told = with_call(failure, "/mnt/mcp/0-demo/tools/echo").message;
        assert!(told.ends_with("`narthex vfs call 0-demo/tools/echo KEY=VALUE`"), "{told}");
    }
}
