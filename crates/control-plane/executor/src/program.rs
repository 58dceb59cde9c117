//! The program of one run: its input, and its end.

use std::{borrow::Cow, path::Path, sync::Arc, time::Duration};

use narthex_model::{EnvName, Secret};
use narthex_runs::{Execution, events_url};
use narthex_supervisor::{
    ChildIo, ExitInfo, LogLimits, LogRing, Process, ProcessSpec, Redact, SpawnError,
};
use serde_json::{Map, Value, json};
use tokio::{
    fs,
    io::AsyncWriteExt,
    time::{Instant, MissedTickBehavior, interval_at, timeout},
};

use crate::{
    CommandExecutor, LEASE, RENEWED, Work,
    instance::{RUNS, write},
};

/// Limits on the kept output of a program.
const KEPT: LogLimits = LogLimits { lines: 200, line_bytes: 2048, total_bytes: 64 * 1024 };
/// Number of the last lines of a failed program that the session gets, and characters of each.
const TOLD_LINES: usize = 20;
const TOLD_CHARS: usize = 200;
/// Time for which its output may stay open after it has ended.
const OUTPUT_WAIT: Duration = Duration::from_millis(200);
/// The shortest variable that is taken for a secret when it is written out.
const SECRET_MIN: usize = 6;

/// The end of a program.
pub(crate) enum Ended {
    /// The program ended by itself, with success.
    Well,
    /// The program failed or did not start, with a report.
    Badly(Value),
    /// The program does not exist, so that another attempt would fail as well; with a report.
    Missing(Value),
    /// The run has ended, or another executor has it.
    Taken,
    /// The daemon stops.
    Closing,
}

/// The reason for which a program must end.
enum Stopped {
    Exited(ExitInfo),
    Taken,
    Closing,
}

impl Work {
    /// Starts the program of a run, and follows it to its end.
    pub(crate) async fn carried(
        &self,
        execution: &Execution,
        of: &CommandExecutor,
        attempt: u32,
    ) -> Ended {
        let file = self.options.place.join(RUNS).join(format!("{}.json", execution.row.id));
        let entries = self.runs.entries(&self.options.url, &execution.run, &execution.token);
        let text = told(execution, entries, attempt).to_string();
        let ended = match write(&file, &text).await {
            Ok(()) => self.followed(execution, of, &file, attempt).await,
            Err(error) => failed(format!("the file of the run cannot be written: {error}")),
        };
        if let Err(error) = fs::remove_file(&file).await {
            tracing::warn!(
                run.id = %execution.row.id,
                "the file of a run could not be removed: {error}"
            );
        }
        ended
    }

    async fn followed(
        &self,
        execution: &Execution,
        of: &CommandExecutor,
        file: &Path,
        attempt: u32,
    ) -> Ended {
        let mut spec = ProcessSpec::new(&of.command, self.options.environment.clone());
        spec.args.clone_from(&of.args);
        spec.env = self.variables(execution, of, file, attempt);
        spec.working_dir = Some(of.cwd.clone().unwrap_or_else(|| execution.folder.clone()));
        spec.stop_grace = of.stop_grace;
        spec.log = LogRing::new(KEPT);
        let redact = redact(execution, of);
        spec.redact = Some(redact.clone());
        spec.server_name = Some(execution.row.id.to_text());
        let log = spec.log.clone();
        let (process, io) = match Process::spawn(spec, &self.programs).await {
            Ok(started) => started,
            Err(error @ SpawnError::NotFound { .. }) => return missing(&error),
            Err(error) => return failed(not_started(&error)),
        };
        let ChildIo { mut stdin, stdout } = io;
        let prompt = execution.brief.prompt.clone().unwrap_or_default();
        let mut feeding = self.programs.spawn(async move {
            // A program that does not read it has closed its end, which is its own affair.
            drop(stdin.write_all(prompt.as_bytes()).await);
        });
        let (id, kept) = (process.id(), log.clone());
        let mut reading =
            self.programs.spawn(async move { kept.keep(stdout, id, Some(redact)).await });
        let stopped = self.wait(execution, &process).await;
        if !matches!(stopped, Stopped::Exited(_)) {
            process.stop().await;
        }
        feeding.abort();
        drop((&mut feeding).await);
        if timeout(OUTPUT_WAIT, &mut reading).await.is_err() {
            reading.abort();
        }
        match stopped {
            Stopped::Taken => Ended::Taken,
            Stopped::Closing => Ended::Closing,
            Stopped::Exited(exit) if exit.code == Some(0) => Ended::Well,
            Stopped::Exited(exit) => Ended::Badly(exited(exit, &log)),
        }
    }

    /// Holds the claim for as long as the program lives.
    async fn wait(&self, execution: &Execution, process: &Process) -> Stopped {
        let closing = self.control.closing();
        let mut exited = process.exited();
        let mut renewal = interval_at(Instant::now() + RENEWED, RENEWED);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut held_until = Instant::now() + LEASE;
        loop {
            tokio::select! {
                exit = &mut exited => return Stopped::Exited(exit),
                () = execution.run.ended() => return Stopped::Taken,
                () = closing.cancelled() => return Stopped::Closing,
                _ = renewal.tick() => {}
            }
            let (row, from) = (&execution.row, Instant::now());
            match self.runs.keep_on(&row.workspace, row.id, &execution.claim, LEASE).await {
                Ok(true) => held_until = from + LEASE,
                Ok(false) => return Stopped::Taken,
                // From then on another executor may carry the run out.
                Err(_) if Instant::now() + RENEWED >= held_until => return Stopped::Taken,
                Err(error) => {
                    tracing::warn!(run.id = %row.id, "a claim could not be renewed: {error}");
                }
            }
        }
    }

    /// The program's variables, besides the few names that every child sees: nothing else of the
    /// daemon's own environment (X-E121).
    fn variables(
        &self,
        execution: &Execution,
        of: &CommandExecutor,
        file: &Path,
        attempt: u32,
    ) -> Vec<(String, String)> {
        let row = &execution.row;
        let mut all: Vec<_> =
            of.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let mut add = |name: &str, value: String| all.push((name.to_owned(), value));
        add("NARTHEX_RUN_ID", row.id.to_text());
        add("NARTHEX_SESSION_ID", row.session.to_text());
        add("NARTHEX_WORKSPACE", row.workspace.to_string());
        add("NARTHEX_AGENT", row.agent.clone());
        add("NARTHEX_ATTEMPT", attempt.to_string());
        add("NARTHEX_MCP_URL", self.options.url.clone());
        if let Some(url) = events_url(&self.options.url, &execution.run) {
            add("NARTHEX_EVENTS_URL", url);
        }
        add("NARTHEX_RUN_TOKEN", execution.token.expose().to_owned());
        add("NARTHEX_RUN_FILE", file.to_string_lossy().into_owned());
        add("NARTHEX_FOLDER", execution.folder.to_string_lossy().into_owned());
        if let Some(waiting) = &row.waiting {
            add("NARTHEX_MODEL", waiting.model.clone());
            add("NARTHEX_RUNTIME_TYPE", waiting.runtime.clone());
        }
        all
    }
}

/// The contents of a run's file. Values for the agent's own environment are in the file alone: as
/// variables they could change the started program, and their authors have no right to do that.
fn told(execution: &Execution, entries: Value, attempt: u32) -> Value {
    let Execution { row, brief, folder, agent_env, .. } = execution;
    let value = |(name, value): (&EnvName, &str)| (name.to_string(), json!(value));
    let env: Map<_, _> = agent_env.expose().map(value).collect();
    let waiting = row.waiting.as_ref();
    let text = |text: &String| (!text.is_empty()).then(|| text.clone());
    let mut told = json!({
        "run_id": row.id.to_text(),
        "session_id": row.session.to_text(),
        "workspace": row.workspace.as_str(),
        "agent_name": row.agent,
        "attempt": attempt,
        "prompt": brief.prompt,
        "params": brief.params,
        "system_prompt": brief.system_prompt,
        "folder": folder,
        "model": waiting.and_then(|waiting| text(&waiting.model)),
        "runtime_type": waiting.and_then(|waiting| text(&waiting.runtime)),
        "env": env,
    });
    if let (Some(told), Value::Object(entries)) = (told.as_object_mut(), entries) {
        told.extend(entries);
    }
    told
}

/// Removes the program's own secrets from its output.
fn redact(execution: &Execution, of: &CommandExecutor) -> Redact {
    let own = of.env.values().filter(|value| value.len() >= SECRET_MIN).cloned();
    let bound = execution.agent_env.expose().map(|(_, value)| value.to_owned());
    let token = execution.token.expose().to_owned();
    let secrets: Vec<_> = own.chain(bound).chain([token]).map(Secret::new).collect();
    Arc::new(move |line| {
        let mut line = Cow::Borrowed(line);
        for secret in &secrets {
            if !secret.expose().is_empty() && line.contains(secret.expose()) {
                line = Cow::Owned(line.replace(secret.expose(), "[redacted]"));
            }
        }
        line
    })
}

fn failed(reason: String) -> Ended {
    Ended::Badly(json!({ "reason": reason }))
}

fn missing(error: &SpawnError) -> Ended {
    let reason = format!("{}; it is not tried again", not_started(error));
    Ended::Missing(json!({ "reason": reason }))
}

fn not_started(error: &SpawnError) -> String {
    format!("its program could not be started: {error}")
}

fn exited(exit: ExitInfo, log: &LogRing) -> Value {
    let lines = log.tail();
    let last = lines.iter().skip(lines.len().saturating_sub(TOLD_LINES));
    let cut = |line: &String| line.chars().take(TOLD_CHARS).collect::<String>();
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("its program ended with exit code {code}"),
        (None, Some(signal)) => format!("its program was ended by signal {signal}"),
        (None, None) => "its program failed".to_owned(),
    };
    let reason = match lines.iter().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("{how}; its last line is: {}", cut(line)),
        None => how,
    };
    json!({
        "reason": reason,
        "exit_code": exit.code,
        "signal": exit.signal,
        "last_lines": last.map(cut).collect::<Vec<_>>(),
    })
}
