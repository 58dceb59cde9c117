//! `narthex strace`: operations of a run, as they happen, through the daemon.

use std::{process::ExitCode, time::Duration};

use http::Method;
use narthex_client::Context;
use narthex_client::cli::StraceArgs;
use narthex_model::{ErrorKind, command::narthex};
use narthex_run_events::{Line, Opened};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::{
    signal::ctrl_c,
    time::{Instant, sleep},
};

use crate::{
    Failure, FailureKind,
    commands::across,
    daemon_client::{DaemonClient, segment, workspace_path},
    output::{self, harmless},
};

/// The pause before a daemon that has gone is looked for again.
pub(super) const AGAIN: Duration = Duration::from_secs(1);
/// Largest number of runs that are named in the failure for an unknown run.
const NAMED: usize = 20;

pub(crate) async fn run(args: &StraceArgs, context: &Context) -> Result<ExitCode, Failure> {
    let following =
        Following { args, context, began: None, is_away: false, opened: Opened::default() };
    tokio::select! {
        biased;
        interrupted = ctrl_c() => interrupted?,
        followed = Box::pin(following.follow()) => followed?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a stream came to its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The run has ended.
    Run,
    /// The reader of the output has closed it.
    Reader,
    /// The daemon has ended the stream, or has ended itself.
    Stream,
}

struct Following<'a> {
    args: &'a StraceArgs,
    context: &'a Context,
    /// Start of the first stream.
    began: Option<Instant>,
    /// True if the daemon could not be reached.
    is_away: bool,
    /// The operations that the stream has reported as open.
    opened: Opened,
}

impl Following<'_> {
    /// Shows operations until the run ends; where the daemon goes away, it is waited for.
    async fn follow(mut self) -> Result<(), Failure> {
        loop {
            match self.watch().await {
                Ok(End::Run | End::Reader) => return Ok(()),
                Ok(End::Stream) => {}
                Err(failure) if self.began.is_some() && is_away(&failure) => {
                    self.wait("the daemon is unreachable; waiting for it").await;
                }
                // A daemon that was started anew may not have it yet.
                Err(failure) if self.began.is_some() && is_unknown_server(&failure) => {
                    self.wait("the server is unreachable; waiting for it").await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Says once why it is waited, and waits for a while.
    async fn wait(&mut self, why: &str) {
        if !self.is_away {
            self.say(&format!("{why} (Ctrl-C ends it)"));
        }
        self.is_away = true;
        sleep(AGAIN).await;
    }

    /// Shows the operations of one stream.
    async fn watch(&mut self) -> Result<End, Failure> {
        let client = DaemonClient::operator(&self.context.daemon)?;
        let id = self.find(&client).await?;
        let path = format!("/runs/{}/trace?alias={}", segment(&id), self.args.aliases.join(","));
        let path = workspace_path(&self.args.place.workspace, &path);
        let mut events = client.api_events(Method::GET, path).await?;
        self.opened = Opened::default();
        let earlier = self.began.get_or_insert_with(Instant::now).elapsed();
        let earlier_us = u64::try_from(earlier.as_micros()).unwrap_or(u64::MAX);
        while let Some(event) = events.next().await? {
            self.show(&event, earlier_us)?;
            if event["type"] == "end" {
                return Ok(End::Run);
            }
            if output::reader_is_gone() {
                return Ok(End::Reader);
            }
        }
        Ok(End::Stream)
    }

    fn show(&mut self, event: &Value, earlier_us: u64) -> Result<(), Failure> {
        let kind = event["type"].as_str().unwrap_or_default();
        if kind == "operation" && event["is_inner"] == true && !self.args.calls {
            return Ok(());
        }
        if self.context.format.is_json() {
            return output::json(event);
        }
        match kind {
            "operation" => {
                let line = Line::deserialize(event).map_err(|error| unreadable(&error))?;
                let (arrow, is_ascii) =
                    if self.context.is_ascii { ("->", true) } else { ("→", false) };
                let text = harmless(&self.opened.text(&line, earlier_us, arrow));
                output::line(&if is_ascii { ascii(&text) } else { text })?;
            }
            "begin" if std::mem::take(&mut self.is_away) => {
                self.say("watching again; operations in between are missing here");
            }
            "begin" if earlier_us < 1_000_000 => {
                let agent = event["agent_name"].as_str().map(|agent| format!(" of {agent}"));
                let whose = match event["is_local"] == true {
                    true => ", the daemon's own",
                    false => agent.as_deref().unwrap_or_default(),
                };
                let (pid, id) = (&event["pid"], event["run_id"].as_str().unwrap_or_default());
                self.say(&format!("watching run {pid}{whose} ({id}); Ctrl-C ends it"));
            }
            "lost" => self.say(&format!(
                "{} operations are missing here, because they came too fast",
                event["count"]
            )),
            "end" => {
                let status = event["status"].as_str().unwrap_or("ended");
                self.say(&format!("the run has ended ({status})"));
            }
            _ => {}
        }
        Ok(())
    }

    fn say(&self, text: &str) {
        if !self.context.format.is_quiet() {
            output::notice(text);
        }
    }

    /// The id of the run that is meant.
    async fn find(&self, client: &DaemonClient) -> Result<String, Failure> {
        let wanted = &self.args.run;
        if wanted.starts_with("run_") {
            return Ok(wanted.clone());
        }
        let path = workspace_path(&self.args.place.workspace, "/runs?status=running");
        let runs = client.api_all(&path).await?;
        let is_local = |run: &&Value| run["is_local"] == true;
        let has_pid =
            |run: &&Value| run["pid"].as_u64().is_some_and(|pid| pid.to_string() == *wanted);
        let found = match wanted.as_str() {
            "local" => runs.iter().find(is_local),
            _ => runs.iter().find(has_pid),
        };
        if let Some(id) = found.and_then(|run| run["run_id"].as_str()) {
            return Ok(id.to_owned());
        }
        let here = self.args.place.workspace.as_str();
        let has = async |workspace: &str| {
            let runs = across::active_runs(client, workspace).await?;
            Ok(runs.iter().filter(|run| has_pid(run)).count())
        };
        let command = narthex("strace {}", &[wanted]);
        let others = across::elsewhere(client, here, &command, has).await?;
        let (wanted, those) = (shortened(wanted), those(&runs));
        let others = if others.is_empty() { others } else { format!("; {others}") };
        let text = format!("no run `{wanted}` is active in workspace `{here}`; {those}{others}");
        Err(Failure::new(ErrorKind::NotFound, text))
    }
}

/// The active runs, in words.
fn those(runs: &[Value]) -> String {
    let named = runs.iter().take(NAMED).map(|run| match (run["is_local"] == true, &run["pid"]) {
        (true, _) => "local".to_owned(),
        (false, pid) => match run["agent_name"].as_str() {
            Some(agent) => format!("{pid} ({})", harmless(agent)),
            None => pid.to_string(),
        },
    });
    let named = named.collect::<Vec<_>>().join(", ");
    match runs.len() {
        0 => "the workspace has no active run".to_owned(),
        count if count > NAMED => format!("its active runs: {named} and {} more", count - NAMED),
        _ => format!("its active runs: {named}"),
    }
}

fn shortened(text: &str) -> String {
    harmless(&text.chars().take(100).collect::<String>())
}

/// Without any character beyond ASCII.
fn ascii(text: &str) -> String {
    let text = text.replace('µ', "u");
    let escaped = text.chars().map(|c| match c.is_ascii() {
        true => c.to_string(),
        false => c.escape_default().to_string(),
    });
    escaped.collect()
}

/// True if a failure is one of a daemon that is not there now.
pub(super) fn is_away(failure: &Failure) -> bool {
    failure.kind == FailureKind::Operation(ErrorKind::Unavailable)
}

/// True if a failure is one of a run that has no server of a name that was asked for.
fn is_unknown_server(failure: &Failure) -> bool {
    failure.kind == FailureKind::Operation(ErrorKind::Invalid)
}

pub(super) fn unreadable(error: &serde_json::Error) -> Failure {
    let text =
        format!("the daemon's events cannot be read, is the daemon of this version? {error}");
    Failure::new(ErrorKind::Invalid, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strace_without_a_run_lists_the_active_runs() {
        assert_eq!(those(&[]), "the workspace has no active run");
        let local = json!({ "is_local": true, "run_id": "run_0" });
        let runs = [local, json!({ "pid": 2, "agent_name": "reader" }), json!({ "pid": 3 })];
        assert_eq!(those(&runs), "its active runs: local, 2 (reader), 3");
        let many: Vec<_> = (1..=25).map(|pid| json!({ "pid": pid })).collect();
        assert!(those(&many).ends_with(", 19, 20 and 5 more"));
    }

    #[test]
    fn ascii_output_escapes_every_other_character() {
        assert_eq!(ascii("Read(ä) -> 5    2µs"), r"Read(\u{e4}) -> 5    2us");
    }
}
