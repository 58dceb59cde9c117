//! `narthex top`: the load of active runs, through the daemon.

use std::{
    cell::RefCell,
    io::{IsTerminal as _, stdin, stdout},
    pin::pin,
    process::ExitCode,
};

use http::Method;
use narthex_client::Context;
use narthex_client::cli::TopArgs;
use narthex_client::terminal::{Screen, Sign, Signs, leave_is_typed};
use narthex_model::command::narthex;
use narthex_run_events::{HEADER, Sort, Top};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::{signal::ctrl_c, time::sleep};

use super::strace::{AGAIN, is_away, unreadable};
use crate::{
    Failure,
    commands::across,
    daemon_client::{DaemonClient, workspace_path},
    output, table,
};

/// In place of a table without rows.
const NO_RUNS: &str = "There are no runs.";

pub(crate) async fn run(args: &TopArgs, context: &Context) -> Result<ExitCode, Failure> {
    // A failure at once is shown on an ordinary screen.
    let client = DaemonClient::operator(&context.daemon)?;
    client.api_get(workspace_path(&args.place.workspace, "/runs?limit=1")).await?;
    let is_seen = stdout().is_terminal() && stdin().is_terminal();
    let is_screen = is_seen && !args.once && !context.format.is_json();
    if context.format.is_text() {
        let has = async |workspace: &str| Ok(across::active_runs(&client, workspace).await?.len());
        let others =
            across::elsewhere(&client, &args.place.workspace, &narthex("top", &[]), has).await?;
        if !others.is_empty() {
            output::notice(&format!("active runs elsewhere: {others}"));
        }
    }
    // Signals are caught before the screen opens, so that any signal restores the terminal.
    let mut signs = if is_screen { Some(Signs::new()?) } else { None };
    let screen = if is_screen { Some(Screen::open()?) } else { None };
    let last = RefCell::default();
    let showing = Showing { args, context, screen: screen.as_ref(), last };
    let mut shown = pin!(showing.show());
    let mut left = pin!(async {
        match &screen {
            Some(_) => leave_is_typed().await,
            None => std::future::pending().await,
        }
    });
    loop {
        tokio::select! {
            biased;
            interrupted = ctrl_c() => {
                interrupted?;
                return Ok(ExitCode::SUCCESS);
            }
            sign = next(&mut signs) => match sign {
                Sign::Leave => return Ok(ExitCode::SUCCESS),
                Sign::Resized => showing.draw()?,
                Sign::Suspend => showing.suspend()?,
            },
            () = &mut left => return Ok(ExitCode::SUCCESS),
            shown = &mut shown => return shown.map(|()| ExitCode::SUCCESS),
        }
    }
}

async fn next(signs: &mut Option<Signs>) -> Sign {
    match signs {
        Some(signs) => signs.next().await,
        None => std::future::pending().await,
    }
}

/// The content of the screen.
enum Shown {
    Top(Top),
    /// The reason why there is no table.
    Words(&'static str),
}

struct Showing<'a> {
    args: &'a TopArgs,
    context: &'a Context,
    screen: Option<&'a Screen>,
    /// The last drawn content.
    last: RefCell<Option<Shown>>,
}

impl Showing<'_> {
    /// Shows tables for as long as a person looks; where the daemon goes away, it is waited for.
    async fn show(&self) -> Result<(), Failure> {
        let mut was_away = false;
        loop {
            match self.stream().await {
                Ok(true) => return Ok(()),
                Ok(false) => was_away = false,
                Err(failure) if is_away(&failure) && !self.args.once => {
                    let text = "the daemon is unreachable; waiting for it";
                    match self.screen {
                        Some(_) => self.show_anew(Shown::Words(text))?,
                        None if was_away || self.context.format.is_quiet() => {}
                        None => output::notice(text),
                    }
                    was_away = true;
                    sleep(AGAIN).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Shows the tables of one stream. `true` if no other is to follow.
    async fn stream(&self) -> Result<bool, Failure> {
        let client = DaemonClient::operator(&self.context.daemon)?;
        let path = format!("/top?interval={}", self.args.interval);
        let path = workspace_path(&self.args.place.workspace, &path);
        let mut events = client.api_events(Method::GET, path).await?;
        let mut is_first = true;
        while let Some(document) = events.next().await? {
            // The first one has counted nothing yet: it is there to be looked at meanwhile.
            if std::mem::take(&mut is_first) && self.screen.is_none() {
                continue;
            }
            self.one(&document)?;
            if self.args.once || output::reader_is_gone() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn one(&self, document: &Value) -> Result<(), Failure> {
        if self.context.format.is_json() {
            return output::json(document);
        }
        let top = Top::deserialize(document).map_err(|error| unreadable(&error))?;
        let top = top.sorted(Sort::parse(&self.args.sort).unwrap_or_default());
        if self.context.format.is_quiet() {
            return top.runs.iter().try_for_each(|run| output::line(&run.pid.to_string()));
        }
        if self.screen.is_some() {
            return self.show_anew(Shown::Top(top));
        }
        let (summary, rows) = (top.summary(), table::render(&HEADER, &top.rows(), NO_RUNS));
        let end = if self.args.once { "" } else { "\n\n " };
        output::line(&format!("{summary}\n\n{rows}{end}"))
    }

    fn show_anew(&self, shown: Shown) -> Result<(), Failure> {
        *self.last.borrow_mut() = Some(shown);
        self.draw()
    }

    /// Draws the last answer, for the present size of the terminal.
    fn draw(&self) -> Result<(), Failure> {
        let (Some(screen), Some(last)) = (self.screen, &*self.last.borrow()) else { return Ok(()) };
        match last {
            Shown::Words(words) => screen.draw(&[(*words).to_owned()], "")?,
            Shown::Top(top) => {
                let heading = top.heading(&self.args.sort, screen.columns());
                screen.draw(&heading, &table::render(&HEADER, &top.rows(), NO_RUNS))?;
            }
        }
        Ok(())
    }

    fn suspend(&self) -> Result<(), Failure> {
        if let Some(screen) = self.screen {
            screen.suspend()?;
        }
        self.draw()
    }
}
