//! `narthex check mcp`: finds faults that would keep servers from working, before they are started.

mod agents;
mod browsers;
mod entries;
mod executors;
mod files;
mod gates;
mod host;
mod rows;

use std::{process::ExitCode, time::SystemTime};

use narthex_model::{ErrorKind, Timestamp};
use narthex_wire::Revision;
use serde::Serialize;
use serde_json::json;

use super::{packages::FailedStarts, source};
use crate::{
    Failure,
    cli::Context,
    output::{self, Colour, harmless, paint},
};

/// The weight of one finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Info,
    Warn,
    Error,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Check {
    /// The code for programs, such as `NPX`.
    code: &'static str,
    level: Level,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub(crate) async fn run(context: Context) -> Result<ExitCode, Failure> {
    let files = source::unfilled(&context.settings);
    let mut checks = vec![transports()];
    let served = rows::served(&context.settings).await;
    let rows = rows::all(&context.settings).await;
    let is_new = |check: &Check| !rows.iter().any(|row| row.tells(check));
    let failed = FailedStarts::of(&context.settings).await;
    let of_entries = entries::all(&files, &served, &failed).into_iter();
    let of_entries: Vec<_> = of_entries.filter(is_new).collect();
    checks.extend(rows);
    checks.extend(host::programs(&files));
    checks.extend(files::all(&files, &context.settings, &served).await);
    checks.extend(of_entries);
    // The words of a team stay out of sight until there are agents.
    let of_agents = agents::all(&context.settings).await;
    checks.extend(executors::all(&context.settings, agents::are_named(&of_agents)));
    checks.extend(of_agents);
    show(&checks, &context)
}

/// True if a program can be started by its name.
pub(super) fn is_installed(name: &str) -> bool {
    host::find(name, std::path::Path::new("")).is_some()
}

impl Check {
    fn info(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, level: Level::Info, message: message.into(), detail: None, hint: None }
    }

    fn error(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::warn(code, message, hint) }
    }

    fn warn(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        let hint = Some(hint.into());
        Self { level: Level::Warn, hint, ..Self::info(code, message) }
    }

    fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// True if this check reports the fault that another one is about.
    fn tells(&self, other: &Self) -> bool {
        match (&self.detail, &other.detail) {
            (Some(own), Some(fault)) => self.level == Level::Error && own.contains(fault),
            (None, _) | (_, None) => false,
        }
    }

    fn lines(&self) -> Vec<String> {
        let (word, colour) = match self.level {
            Level::Info => ("[INFO]", None),
            Level::Warn => ("[WARN]", Some(Colour::Yellow)),
            Level::Error => ("[ERROR]", Some(Colour::Red)),
        };
        let word = colour.map_or_else(|| word.to_owned(), |colour| paint(word, colour));
        let mut lines = vec![format!("{word} {} {}", self.code, harmless(&self.message))];
        let more = [("detail", &self.detail), ("hint", &self.hint)];
        let more = more.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
        lines.extend(more.map(|(name, text)| format!("  {name}: {}", harmless(text))));
        lines
    }
}

/// The transports and revisions that servers may speak.
fn transports() -> Check {
    let revisions = Revision::ALL.map(Revision::as_str);
    let text = "servers are reached over stdio, Streamable HTTP and HTTP+SSE";
    Check::info("TRANSPORT", text).detail(format!("revisions {}", revisions.join(", ")))
}

fn show(checks: &[Check], context: &Context) -> Result<ExitCode, Failure> {
    let count = |level| checks.iter().filter(|check| check.level == level).count();
    let [infos, warnings, errors] = [Level::Info, Level::Warn, Level::Error].map(count);
    let code = if errors > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    let time = Timestamp::new(SystemTime::now()).to_string();
    if context.format.is_json() {
        let status = match (errors, warnings) {
            (0, 0) => "pass",
            (0, _) => "warn",
            (_, _) => "fail",
        };
        let counts = json!({ "info": infos, "warn": warnings, "error": errors });
        let data = json!({ "status": status, "time": time, "counts": counts, "checks": checks });
        if errors == 0 {
            output::done(&data)?;
        } else {
            let kind = ErrorKind::Unavailable.as_str();
            let message = "some checks found errors";
            let error = json!({ "code": "check_failed", "kind": kind, "message": message });
            output::json(&json!({ "ok": false, "error": error, "data": data }))?;
        }
        return Ok(code);
    }
    if context.format.is_quiet() {
        for check in checks.iter().filter(|check| check.level == Level::Error) {
            output::line(&check.lines()[0])?;
        }
        return Ok(code);
    }
    output::sentence(&format!("Checks of MCP servers, {time}"))?;
    for line in checks.iter().flat_map(Check::lines) {
        output::sentence(&line)?;
    }
    let of = |count, what| output::counted(count as u64, what);
    let (warnings, errors) = (of(warnings, "warning"), of(errors, "error"));
    output::sentence(&format!("{infos} info, {warnings}, {errors}"))?;
    Ok(code)
}
