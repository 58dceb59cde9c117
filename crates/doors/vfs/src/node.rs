//! The nodes that paths name: the grammar of `/mnt/mcp/<pid>-<alias>/…` (D20).
//!
//! Names of tools and prompts are percent-decoded once, so that each can be written. A resource's
//! URI is the rest of the path after its prefix, unchanged.

use std::fmt;

use narthex_model::{Alias, Pid};

use crate::{Failure, Kind, name};

/// The directory of all mounts.
pub const ROOT: &str = "/mnt/mcp";

/// The longest path, in bytes.
pub const PATH_MAX: usize = 4096;

/// The name of a mount, `<pid>-<alias>`: whose it is and what it is called there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MountName {
    /// The process that the server was mounted for.
    pub pid: Pid,
    /// The server's alias in the process.
    pub alias: Alias,
}

impl MountName {
    /// Reads a name, split at its first `-`; `None` for what is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (pid, alias) = text.split_once('-')?;
        // One spelling for each number: no sign, no leading zero.
        let is_number = pid == "0" || !pid.starts_with(['0', '+']);
        let pid = Pid::new(pid.parse().ok().filter(|_| is_number)?);
        Some(Self { pid, alias: Alias::new(alias).ok()? })
    }

    /// The path of the mount.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{ROOT}/{self}")
    }

    /// The names of the files in its `ctl`, in order.
    #[must_use]
    pub fn control_files(&self) -> &'static [&'static str] {
        let is_daemons_own = self.pid == Pid::new(0);
        if is_daemons_own { &CONTROL_FILES } else { &CONTROL_FILES_OF_RUNS }
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.pid, self.alias)
    }
}

/// The place that a path below [`ROOT`] names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// [`ROOT`] itself: the mounts.
    Mounts,
    /// Something of one mount.
    In(MountName, Node),
}

/// A file or directory of a mount.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    /// The mount itself.
    Root,
    /// `tools`, `resources` or `prompts`.
    List(Kind),
    /// `tools/NAME`: arguments are written, the result is read.
    Tool(String),
    /// `tools/NAME.schema.json`: the schema of its arguments.
    Schema(String),
    /// `tools/NAME.md`: what it is for.
    Description(String),
    /// `resources/URI`.
    Resource(String),
    /// `prompts/NAME`: arguments are written if it has any, the prompt is read.
    Prompt(String),
    /// `ctl`: what the other files of it are about.
    Control,
    /// `ctl/status`: how the server is.
    Status,
    /// `ctl/logs`: what the server wrote to its standard error.
    Logs,
    /// `ctl/error`: the last failure that the process met at this mount.
    Error,
}

/// The files of `ctl`, in order. The logs are for operators: only the daemon's own run may read
/// them, so no other one is shown them.
const CONTROL_FILES: [&str; 3] = ["error", "logs", "status"];
const CONTROL_FILES_OF_RUNS: [&str; 2] = ["error", "status"];

const SCHEMA: &str = ".schema.json";
const DESCRIPTION: &str = ".md";

impl Node {
    /// True if the node is a directory wherever directories exist.
    #[must_use]
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Root | Self::List(_) | Self::Control)
    }

    /// True if the node can be written to.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        matches!(self, Self::Tool(_) | Self::Prompt(_))
    }

    /// The path below its mount, such as `/tools/echo`; `/` for the mount itself. Reading it gives
    /// the node again.
    #[must_use]
    pub fn sub_path(&self) -> String {
        match self {
            Self::Root => "/".to_owned(),
            Self::List(kind) => format!("/{}", kind.as_str()),
            Self::Tool(tool) => format!("/tools/{}", name::tool_file(tool)),
            Self::Schema(tool) => format!("/tools/{}{SCHEMA}", name::tool_file(tool)),
            Self::Description(tool) => format!("/tools/{}{DESCRIPTION}", name::tool_file(tool)),
            Self::Resource(uri) => format!("/resources/{uri}"),
            Self::Prompt(prompt) => format!("/prompts/{}", name::encoded(prompt)),
            Self::Control => "/ctl".to_owned(),
            Self::Status => "/ctl/status".to_owned(),
            Self::Logs => "/ctl/logs".to_owned(),
            Self::Error => "/ctl/error".to_owned(),
        }
    }

    /// The node of a file of `tools`, by the file's name.
    #[must_use]
    pub fn of_tool_file(file: &str) -> Self {
        match (file.strip_suffix(SCHEMA), file.strip_suffix(DESCRIPTION)) {
            (Some(tool), _) if !tool.is_empty() => Self::Schema(name::decoded(tool)),
            (_, Some(tool)) if !tool.is_empty() => Self::Description(name::decoded(tool)),
            _ => Self::Tool(name::decoded(file)),
        }
    }

    /// The node at a path below a mount: empty, or with a `/` at its beginning.
    fn parse(sub_path: &str) -> Result<Self, Failure> {
        if let Some(uri) = sub_path.strip_prefix("/resources/").filter(|uri| !uri.is_empty()) {
            return Ok(Self::Resource(uri.to_owned()));
        }
        let trimmed = sub_path.trim_end_matches('/');
        if let Some(file) = trimmed.strip_prefix("/tools/").filter(|file| !file.is_empty()) {
            return Ok(Self::of_tool_file(file));
        }
        if let Some(prompt) = trimmed.strip_prefix("/prompts/").filter(|name| !name.is_empty()) {
            return Ok(Self::Prompt(name::decoded(prompt)));
        }
        match trimmed {
            "" => Ok(Self::Root),
            "/tools" => Ok(Self::List(Kind::Tools)),
            "/resources" => Ok(Self::List(Kind::Resources)),
            "/prompts" => Ok(Self::List(Kind::Prompts)),
            "/ctl" => Ok(Self::Control),
            "/ctl/status" => Ok(Self::Status),
            "/ctl/logs" => Ok(Self::Logs),
            "/ctl/error" => Ok(Self::Error),
            _ => Err(Failure::not_found(
                "a mount has `tools`, `tools/NAME`, `tools/NAME.schema.json`, `tools/NAME.md`, \
                 `resources`, `resources/URI`, `prompts`, `prompts/NAME`, `ctl/status`, \
                 `ctl/logs` and `ctl/error`",
            )),
        }
    }
}

impl Place {
    /// Parses the place that a path names, whether the place exists or not.
    ///
    /// # Errors
    /// When the path is longer than [`PATH_MAX`] or has a NUL (`INVALID`), or is none of the
    /// grammar's (`NOT_FOUND`); the message names the valid forms (R-G3).
    pub fn parse(path: &str) -> Result<Self, Failure> {
        if path.len() > PATH_MAX {
            return Err(Failure::invalid(format!("a path has at most {PATH_MAX} bytes")));
        }
        if path.contains('\0') {
            return Err(Failure::invalid("a path cannot have a NUL byte"));
        }
        let outside = || {
            Failure::not_found(format!(
                "mounts are at `{ROOT}/PID-ALIAS`, such as `{ROOT}/1-files`"
            ))
        };
        let below = path.strip_prefix(ROOT).ok_or_else(outside)?;
        if below.trim_end_matches('/').is_empty() {
            return Ok(Self::Mounts);
        }
        let below = below.strip_prefix('/').ok_or_else(outside)?;
        let (mount, sub_path) = match below.find('/') {
            Some(at) => below.split_at(at),
            None => (below, ""),
        };
        let mount = MountName::parse(mount).ok_or_else(outside)?;
        Ok(Self::In(mount, Node::parse(sub_path)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Code;

    fn node(sub_path: &str) -> Result<Node, Failure> {
        match Place::parse(&format!("/mnt/mcp/3-github{sub_path}"))? {
            Place::In(mount, node) => {
                assert_eq!(mount.to_string(), "3-github");
                Ok(node)
            }
            Place::Mounts => panic!("this is of a mount"),
        }
    }

    #[test]
    fn r_g2_paths_are_parsed_with_and_without_a_trailing_slash() {
        for end in ["", "/", "//"] {
            assert_eq!(node(end).ok(), Some(Node::Root));
            for kind in Kind::ALL {
                let path = format!("/{}{end}", kind.as_str());
                let is_list = matches!(node(&path), Ok(Node::List(one)) if one == kind);
                // The slash after `resources/` belongs to a URI, which may not be empty.
                assert!(is_list || path == "/resources//", "{path}");
            }
            let tool = format!("/tools/search_repos{end}");
            assert_eq!(node(&tool).ok(), Some(Node::Tool("search_repos".into())));
        }
        assert_eq!(Place::parse("/mnt/mcp/").ok(), Some(Place::Mounts));
        let uri = "file:///a/b%20c/";
        let resource = node(&format!("/resources/{uri}"));
        assert_eq!(resource.ok(), Some(Node::Resource(uri.into())), "R-G2: it keeps its slash");
    }

    #[test]
    fn a_tool_has_a_schema_file_and_a_description_file() {
        assert_eq!(node("/tools/a.schema.json").ok(), Some(Node::Schema("a".into())));
        assert_eq!(node("/tools/a.md").ok(), Some(Node::Description("a".into())));
        assert_eq!(node("/tools/a%2Emd").ok(), Some(Node::Tool("a.md".into())));
        assert_eq!(node("/tools/.md").ok(), Some(Node::Tool(".md".into())));
        assert_eq!(node("/tools/a/b%2Fc").ok(), Some(Node::Tool("a/b/c".into())));
    }

    #[test]
    fn r_g3_other_paths_are_not_found_and_the_message_names_the_forms() {
        for path in ["/tool", "/toolsx", "/ctl/other", "/TOOLS", "/x/tools"] {
            let failure = node(path).expect_err(path);
            assert_eq!(failure.code, Code::NotFound);
            assert!(failure.message.contains("`tools/NAME`"), "{}", failure.message);
        }
        for path in
            ["/mnt/mcpx", "/etc/passwd", "", "/mnt/mcp/x-a", "/mnt/mcp/00-a", "/mnt/mcp/01-a"]
        {
            let failure = Place::parse(path).expect_err(path);
            assert_eq!(failure.code, Code::NotFound);
        }
        let own = Place::parse("/mnt/mcp/0-a").expect("the daemon's own run");
        assert!(matches!(own, Place::In(name, Node::Root) if name.pid == Pid::OWN));
        assert_eq!(Place::parse("/mnt/mcp/+1-a").expect_err("a sign").code, Code::NotFound);
        let long = format!("/mnt/mcp/1-a/resources/{}", "x".repeat(PATH_MAX));
        assert_eq!(Place::parse(&long).expect_err("too long").code, Code::Invalid);
        assert_eq!(Place::parse("/mnt/mcp/1-a/tools/\0").expect_err("NUL").code, Code::Invalid);
    }

    #[test]
    fn a_mount_is_split_at_its_first_hyphen() {
        let mount = MountName::parse("12-my-own-server").expect("it is one");
        assert_eq!((mount.pid.get(), mount.alias.as_str()), (12, "my-own-server"));
        assert_eq!(mount.path(), "/mnt/mcp/12-my-own-server");
    }

    proptest! {
        #[test]
        fn the_path_of_a_node_parses_to_the_same_node(name in "[^\0]{1,40}") {
            for wanted in [
                Node::Tool(name.clone()),
                Node::Schema(name.clone()),
                Node::Description(name.clone()),
                Node::Prompt(name.clone()),
                Node::Resource(name.clone()),
            ] {
                prop_assert_eq!(node(&wanted.sub_path()).ok(), Some(wanted));
            }
        }
    }
}
