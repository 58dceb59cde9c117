//! The dialects of entries as data: names of fields, units, and the notation of placeholders.

use super::placeholder::Notation;
use crate::clients::{Shape, Transport};

/// The fields of an entry in one dialect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dialect {
    /// The program.
    pub(super) command: &'static str,
    /// The environment of the program.
    pub(super) env: &'static str,
    /// The working folder of the program.
    pub(super) cwd: Option<&'static str>,
    /// Addresses, the strongest first, each with the transport of an entry without a type.
    pub(super) urls: &'static [(&'static str, Transport)],
    /// Keys to the headers.
    pub(super) headers: &'static [&'static str],
    /// The longest time of a call.
    pub(super) timeout: Option<Duration>,
    /// The longest time of a start.
    pub(super) start: Option<Duration>,
    /// Names of the tools that are shown, and of those that are hidden.
    pub(super) lists: Lists,
    pub(super) notation: Notation,
}

/// A field with a duration as a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duration {
    pub(super) field: &'static str,
    /// Milliseconds of one.
    pub(super) unit_ms: f64,
}

/// Fields with names of tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lists {
    pub(super) allow: Option<&'static str>,
    pub(super) deny: Option<&'static str>,
    /// The meaning of an empty list of shown tools.
    pub(super) empty: Empty,
}

/// The meaning of an empty list of shown tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// All tools are shown.
    All,
    /// No tool is shown.
    None,
}

const HTTP: &[(&str, Transport)] = &[("url", Transport::Http)];
const NO_LISTS: Lists = Lists { allow: None, deny: None, empty: Empty::All };
const DISABLED_TOOLS: Lists = Lists { deny: Some("disabledTools"), ..NO_LISTS };
const ENABLED_TOOLS: Lists =
    Lists { allow: Some("enabled_tools"), deny: Some("disabled_tools"), empty: Empty::None };

const USUAL: Dialect = Dialect {
    command: "command",
    env: "env",
    cwd: Some("cwd"),
    urls: HTTP,
    headers: &["headers"],
    timeout: None,
    start: None,
    lists: NO_LISTS,
    notation: Notation::None,
};

const fn ms(field: &'static str) -> Option<Duration> {
    Some(Duration { field, unit_ms: 1.0 })
}

const fn seconds(field: &'static str) -> Option<Duration> {
    Some(Duration { field, unit_ms: 1000.0 })
}

const EDITOR: Dialect = Dialect { notation: Notation::Editor, ..USUAL };

const CLAUDE: Dialect = Dialect { timeout: ms("timeout"), notation: Notation::Braced, ..USUAL };

const WINDSURF: Dialect = Dialect {
    urls: &[("serverUrl", Transport::Http), ("url", Transport::Http)],
    lists: DISABLED_TOOLS,
    ..EDITOR
};

const CODEX: Dialect = Dialect {
    headers: &["http_headers"],
    timeout: seconds("tool_timeout_sec"),
    start: seconds("startup_timeout_sec"),
    lists: ENABLED_TOOLS,
    ..USUAL
};

const GEMINI: Dialect = Dialect {
    urls: &[("httpUrl", Transport::Http), ("url", Transport::Sse)],
    timeout: ms("timeout"),
    lists: Lists { allow: Some("includeTools"), deny: Some("excludeTools"), empty: Empty::None },
    notation: Notation::Shell,
    ..USUAL
};

const CLINE: Dialect =
    Dialect { urls: &[("url", Transport::Sse)], timeout: seconds("timeout"), ..USUAL };

const ROO: Dialect = Dialect { timeout: seconds("timeout"), lists: DISABLED_TOOLS, ..EDITOR };

const ZED: Dialect = Dialect { timeout: seconds("timeout"), ..USUAL };

const GOOSE: Dialect = Dialect {
    command: "cmd",
    env: "envs",
    urls: &[("uri", Transport::Http)],
    timeout: seconds("timeout"),
    lists: Lists { allow: Some("available_tools"), ..NO_LISTS },
    ..USUAL
};

const CONTINUE: Dialect = Dialect {
    headers: &["requestOptions", "headers"],
    start: ms("connectionTimeout"),
    notation: Notation::Continue,
    ..USUAL
};

const OPENCODE: Dialect =
    Dialect { env: "environment", timeout: ms("timeout"), notation: Notation::Opencode, ..USUAL };

const COPILOT: Dialect = Dialect {
    timeout: ms("timeout"),
    lists: Lists { allow: Some("tools"), deny: None, empty: Empty::None },
    notation: Notation::Shell,
    ..USUAL
};

const KIRO: Dialect =
    Dialect { timeout: ms("timeout"), lists: DISABLED_TOOLS, notation: Notation::Braced, ..USUAL };

const AMAZON_Q: Dialect = Dialect { timeout: ms("timeout"), ..EDITOR };

const WARP: Dialect = Dialect { cwd: Some("working_directory"), ..USUAL };

const CRUSH: Dialect = Dialect {
    timeout: seconds("timeout"),
    lists: ENABLED_TOOLS,
    notation: Notation::Crush,
    ..USUAL
};

impl Dialect {
    pub(super) fn of(shape: Shape) -> Self {
        match shape {
            Shape::ClaudeDesktop | Shape::Junie | Shape::LmStudio => USUAL,
            Shape::Cursor | Shape::Vscode | Shape::VisualStudio => EDITOR,
            Shape::Claude => CLAUDE,
            Shape::Windsurf => WINDSURF,
            Shape::Codex => CODEX,
            Shape::Gemini | Shape::Qwen => GEMINI,
            Shape::Cline => CLINE,
            Shape::Roo => ROO,
            Shape::Zed => ZED,
            Shape::Goose => GOOSE,
            Shape::Continue => CONTINUE,
            Shape::Opencode => OPENCODE,
            Shape::Copilot => COPILOT,
            Shape::Kiro => KIRO,
            Shape::AmazonQ => AMAZON_Q,
            Shape::Warp => WARP,
            Shape::Crush => CRUSH,
        }
    }
}
