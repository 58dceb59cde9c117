//! One run: its head, which is live on each of its pages, and its tabs.

use narthex_console::{
    Related, html,
    pages::runs::{
        Link, RunStatus,
        tabs::{RunTabs, RunTop},
    },
    parts::{Action, Filter, Moment, Words},
};
use narthex_model::{RunId, SessionId, command::narthex};
use narthex_runs::{RunStatus as Status, SeenRun, SessionRow, SuspendedSession};

use super::{
    places::{link, path},
    stored::{agent, known},
};
use crate::{
    Access,
    console::{
        answer::nothing,
        links::Links,
        live::{Follows, Fragment, Live, RUN, Topic},
        viewer::Viewer,
    },
    problem::Problem,
    routes::{RUN as MAY_END, SEE_RUNS},
    servers::Query,
};

/// The head of a run, live.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "run",
    access: Access::Member(SEE_RUNS),
    params: &[RUN],
    follows: Follows::Run,
    parts: |viewer, query| Box::pin(parts(viewer, query)),
};

/// Number of hexadecimal digits of a digest that pages show.
pub(super) const DIGITS: usize = 12;

/// One run with its session.
pub(super) struct One {
    pub(super) run: SeenRun,
    pub(super) id: RunId,
    pub(super) session: Option<Session>,
}

/// The session of a run.
pub(super) struct Session {
    pub(super) row: SessionRow,
    pub(super) suspended: Option<SuspendedSession>,
    /// True if a run of the session is active.
    pub(super) is_busy: bool,
    /// True if a program claims the runs of the session, so that their creator needs no token.
    pub(super) is_claimed: bool,
}

impl One {
    /// The run that the path of a page names.
    pub(super) async fn of(viewer: &Viewer<'_>) -> Result<Self, Problem> {
        Self::named(viewer, &viewer.segment(0)).await
    }

    async fn named(viewer: &Viewer<'_>, name: &str) -> Result<Self, Problem> {
        let plain = Self::plain(viewer, name).await?;
        let session = match &plain.run.row {
            Some(row) => Some(Session::of(viewer, &row.session.to_text()).await?),
            None => None,
        };
        Ok(Self { session, ..plain })
    }

    /// The same run without its session, for parts that do not show it.
    pub(super) async fn plain(viewer: &Viewer<'_>, name: &str) -> Result<Self, Problem> {
        let run = known(viewer)?.find(&viewer.workspace, name).await?;
        let id = run.id().ok_or_else(nothing)?;
        Ok(Self { run, id, session: None })
    }

    /// The number of the run.
    pub(super) fn pid(&self) -> u64 {
        self.run.row.as_ref().map_or(0, |row| row.pid.get())
    }

    /// The number and the agent in words.
    pub(super) fn name(&self) -> String {
        match &self.run.row {
            Some(row) => format!("{} of {}", row.pid, agent(&row.agent)),
            None => "0, the daemon's own".to_owned(),
        }
    }

    /// True for a run that has ended.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.run.status(), Status::Over(_))
    }

    /// The head.
    pub(super) fn top(&self, viewer: &Viewer<'_>) -> RunTop {
        let row = self.run.row.as_ref();
        let name = |id| Words::new(&viewer.control().principal_name(id));
        let session_of = |id: SessionId| Link {
            href: viewer.path(&format!("runs?session={}", id.to_text())),
            label: Words::new(&id.to_text()),
        };
        let tools = self.run.view.as_ref().and_then(|view| view.tools());
        let acts_for =
            row.and_then(|row| row.acts_for().filter(|who| Some(*who) != row.driver.as_ref()));
        let created = row.map(|row| row.created_at);
        let created = created.or_else(|| self.run.view.as_ref().map(|view| view.began));
        let status = RunStatus(self.run.status().as_str());
        let session_status = self.session.as_ref().map(Session::status);
        RunTop {
            csrf: viewer.csrf.clone(),
            status,
            session_status: session_status.filter(|other| *other != status),
            reason: self.reason(),
            id: Words::new(&self.id.to_text()),
            pid: self.pid(),
            session: row.map(|row| session_of(row.session)),
            parent: row.and_then(|row| row.parent).map(|parent| link(viewer, parent)),
            driver: row.and_then(|row| row.driver.as_ref()).map(name),
            acts_for: acts_for.map(name),
            created_by: row.map(|row| Words::new(&row.created_by)),
            digest: tools.map(|tools| {
                let digest: String = tools.digest.to_string().chars().take(7 + DIGITS).collect();
                Words::new(&format!("{} tools, {digest}", tools.tools.len()))
            }),
            created: Moment::new(created.unwrap_or(std::time::UNIX_EPOCH)),
            expires: row.filter(|row| row.ended.is_none()).map(|row| Moment::new(row.expires_at)),
            ended: row.and_then(|row| row.ended).map(|(at, _)| Moment::new(at)),
            actions: self.actions(viewer),
            questions: self.questions(viewer),
        }
    }

    /// The reason for the status, where there is one to tell.
    fn reason(&self) -> Option<Words> {
        let id = self.id.to_text();
        let text = match self.run.status().as_str() {
            "pending" => {
                let command = narthex("runs claim {}", &[&id]);
                format!("It waits for a program that carries it out: `{command}` claims it.")
            }
            "expired" => "Its time was over. Its session can go on with another run.".to_owned(),
            "failed" => {
                "The program that carried it out failed, or is lost: the last report under \
                         Messages has the reason."
                    .to_owned()
            }
            "cancelled" => "Its session was cancelled by the run that created it.".to_owned(),
            _ => return None,
        };
        Some(Words::new(&text))
    }

    fn actions(&self, viewer: &Viewer<'_>) -> Vec<Action> {
        self.session.as_ref().map_or_else(Vec::new, |session| session.actions(viewer))
    }

    /// The pages that ask before an end.
    fn questions(&self, viewer: &Viewer<'_>) -> Vec<Link> {
        if !viewer.may(Access::Member(MAY_END)) || self.run.row.is_none() {
            return Vec::new();
        }
        let mut all = Vec::new();
        if !self.is_over() {
            let href = path(viewer, self.id, "ending");
            all.push(Link { href, label: Words::new("End the run") });
        }
        all.extend(self.session.as_ref().and_then(|session| session.question(viewer)));
        all
    }

    /// The tabs, with the one of this path.
    pub(super) fn tabs(&self, viewer: &Viewer<'_>, current: &str) -> RunTabs {
        let all = [
            ("", "Trace"),
            ("tools", "What it could see"),
            ("configuration", "Configuration"),
            ("children", "Children"),
            ("grants", "Grants"),
            ("messages", "Messages"),
            ("files", "Files"),
        ];
        let tab = |(rest, label): (&str, &str)| Filter {
            href: path(viewer, self.id, rest),
            label: label.to_owned(),
            count: None,
            is_current: rest == current,
        };
        RunTabs { tabs: all.map(tab).to_vec() }
    }

    /// The pages that belong to the run.
    pub(super) fn related(&self, viewer: &Viewer<'_>) -> Vec<Related> {
        let run = self.id.to_text();
        let links = Links::of(viewer).audit("Audit of this run", &[("run", &run)]);
        let name = self.run.row.as_ref().map_or("", |row| row.agent.as_str());
        if name.is_empty() {
            return links.found();
        }
        let of_agent = &[("agent", name)];
        let links = links.agent(name).runs(&format!("All runs of {name}"), of_agent);
        links.requests(&format!("What {name} waits for"), of_agent).found()
    }

    /// The head as a live part.
    pub(super) fn live(top: &RunTop) -> Live {
        Live { topic: &TOPIC, parts: vec![Fragment::new("run-top", html(top))] }
    }

    /// The parameters of a page with those that are in its path.
    pub(super) fn with_path(&self, query: Query) -> Query {
        query.with(RUN, &self.id.to_text())
    }
}

impl Session {
    /// A session of the workspace.
    pub(super) async fn of(viewer: &Viewer<'_>, id: &str) -> Result<Self, Problem> {
        let runs = known(viewer)?;
        let (row, all) = runs.session(&viewer.workspace, id).await?;
        let suspended = match row.ended_at {
            None => runs.suspended(&viewer.workspace, row.id).await?,
            Some(_) => None,
        };
        let is_busy = all.iter().any(|run| run.ended.is_none());
        let is_claimed = all.last().is_some_and(|run| run.waiting.is_some());
        Ok(Self { row, suspended, is_busy, is_claimed })
    }

    /// The status, as in the API.
    pub(super) fn status(&self) -> RunStatus {
        status(self.row.ended_at, self.suspended.as_ref())
    }

    fn path(&self, viewer: &Viewer<'_>, verb: &str) -> String {
        viewer.path(&format!("sessions/{}/{verb}", self.row.id.to_text()))
    }

    fn is_own(&self, viewer: &Viewer<'_>) -> bool {
        known(viewer).is_ok_and(|runs| runs.is_own_session(self.row.id))
    }

    fn actions(&self, viewer: &Viewer<'_>) -> Vec<Action> {
        let suspend = Action::new(
            self.path(viewer, "suspend"),
            "Suspend",
            "ends the runs of the session with their open calls, until it is resumed",
        );
        let resume = Action::new(
            self.path(viewer, "resume"),
            "Resume",
            "creates another run of the session, which waits for a program that claims it",
        );
        if self.row.ended_at.is_some() || self.is_own(viewer) {
            return Vec::new();
        }
        let is_resting = self.suspended.is_some() || !self.is_busy;
        let why = match (viewer.may(Access::Member(MAY_END)), is_resting, self.is_claimed) {
            (false, ..) => Some("your roles in this workspace do not include runner or admin"),
            (true, true, false) => Some(
                "the token of the new run is given to its creator alone: resume the session by \
                 the command or the request of the page Sessions",
            ),
            (true, ..) => None,
        };
        let action = if is_resting { resume.primary() } else { suspend };
        vec![match why {
            Some(why) => action.off(why),
            None => action,
        }]
    }

    fn question(&self, viewer: &Viewer<'_>) -> Option<Link> {
        let is_open = self.row.ended_at.is_none() && !self.is_own(viewer);
        let href = self.path(viewer, "ending");
        is_open.then(|| Link { href, label: Words::new("End the session") })
    }
}

/// The status of a session by its end and its suspension.
pub(super) fn status<E, S>(ended: Option<E>, suspended: Option<S>) -> RunStatus {
    RunStatus(match (ended.is_some(), suspended.is_some()) {
        (true, _) => "ended",
        (false, true) => "suspended",
        (false, false) => "running",
    })
}

async fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let one = One::named(viewer, query.text(RUN)).await?;
    Ok(One::live(&one.top(viewer)).parts)
}
