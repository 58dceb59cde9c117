//! The head of a run, and its tabs besides the trace.

use askama::Template;

use super::{Link, RunList, RunRow, RunStatus};
use crate::{
    Frame, filters,
    parts::{Action, Empty, Filter, Moment, Same, Words, form::Field},
};

/// The head of a run. The event stream sends it again when it changes.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/run_top.html")]
pub struct RunTop {
    /// The value that forms repeat.
    pub csrf: String,
    /// The status of the run.
    pub status: RunStatus,
    /// The status of its session, if that differs.
    pub session_status: Option<RunStatus>,
    /// The reason for the status, where there is one to tell.
    pub reason: Option<Words>,
    /// The id of the run.
    pub id: Words,
    /// The number of the run.
    pub pid: u64,
    /// The session, as a link to its runs; the daemon's own run may have none.
    pub session: Option<Link>,
    /// The run that created this one.
    pub parent: Option<Link>,
    /// The human who drives the run.
    pub driver: Option<Words>,
    /// The human whose grants count now, if it is not the driver.
    pub acts_for: Option<Words>,
    /// The creator.
    pub created_by: Option<Words>,
    /// The digest of the recorded tools.
    pub digest: Option<Words>,
    /// The time of creation.
    pub created: Moment,
    /// The time at which an active run ends by itself.
    pub expires: Option<Moment>,
    /// The time of the end.
    pub ended: Option<Moment>,
    /// The buttons.
    pub actions: Vec<Action>,
    /// The pages that ask before an action that cannot be undone.
    pub questions: Vec<Link>,
}

/// The tabs of a run.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/run_tabs.html")]
pub struct RunTabs {
    /// The tabs.
    pub tabs: Vec<Filter>,
}

/// The tools that a run could see.
#[derive(Debug, Template)]
#[template(path = "run_tools.html")]
pub struct ToolsPage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// The tools of this page; `None` if the list is unknown.
    pub tools: Option<SeenTools>,
    /// The reason why the list is unknown.
    pub unknown: &'static str,
    /// The servers with parts that the run does not see.
    pub hidden: Vec<Hidden>,
}

/// The recorded tools of a run.
#[derive(Debug, Clone)]
pub struct SeenTools {
    /// The tools of this page, by their qualified names.
    pub rows: Vec<SeenTool>,
    /// Number of all tools.
    pub count: usize,
    /// The time of the record, for a run that has ended.
    pub at: Option<Moment>,
    /// The address of the next page.
    pub next: Option<String>,
}

/// A tool that a run could see.
#[derive(Debug, Clone)]
pub struct SeenTool {
    /// The qualified name.
    pub name: Words,
    /// The server.
    pub server: Words,
    /// The beginning of the digest of its definition.
    pub digest: Words,
}

/// Tools of a server that the run does not see, and why.
#[derive(Debug, Clone)]
pub struct Hidden {
    /// The server.
    pub server: Words,
    /// The reason, with the number.
    pub why: Words,
    /// Some of the names, for those who may read them.
    pub names: Vec<Words>,
    /// The page or the command that changes it.
    pub remedy: Words,
}

/// The frozen configuration of a run, as far as it may be shown.
#[derive(Debug, Template)]
#[template(path = "run_config.html")]
pub struct ConfigPage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// Facts, each with its name and its origin.
    pub facts: Vec<Fact>,
    /// The servers; `None` if the run was not used since the daemon started, or has ended.
    pub servers: Option<Vec<RunServer>>,
}

/// A fact of the configuration.
#[derive(Debug, Clone)]
pub struct Fact {
    /// The name.
    pub name: &'static str,
    /// The value.
    pub value: Words,
    /// The origin.
    pub origin: &'static str,
}

/// A server of a run.
#[derive(Debug, Clone)]
pub struct RunServer {
    /// The alias.
    pub alias: Words,
    /// The state.
    pub state: crate::parts::State,
    /// The origin of its entry.
    pub origin: Words,
    /// The transport, and the way in which narthex proves itself.
    pub about: Words,
    /// The path of its mount.
    pub path: Words,
    /// The failure.
    pub error: Option<Words>,
}

/// The runs below a run.
#[derive(Debug, Template)]
#[template(path = "run_children.html")]
pub struct ChildrenPage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// The runs, each behind its parent.
    pub list: RunList,
    /// True if there are more.
    pub has_more: bool,
    /// Shown where there are none.
    pub empty: Empty,
}

/// The grants that count in a run.
#[derive(Debug, Template)]
#[template(path = "run_grants.html")]
pub struct GrantsPage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// The grants.
    pub rows: Vec<GrantRow>,
    /// True if the workspace has more grants than were looked at.
    pub has_more: bool,
    /// Shown where there are none.
    pub empty: Empty,
}

/// A grant that counts in a run.
#[derive(Debug, Clone)]
pub struct GrantRow {
    /// The permission.
    pub of: Words,
    /// The subject: an agent or a human.
    pub subject: Words,
    /// The number of uses, or the time.
    pub duration: Words,
    /// The granter.
    pub by: Words,
    /// The time of the grant.
    pub at: Moment,
    /// The time at which it stops counting.
    pub expires: Option<Moment>,
    /// True if no proof showed that the granter was a human.
    pub is_advisory: bool,
    /// The button that revokes it.
    pub action: Action,
}

/// Messages of the session, and a form for one.
#[derive(Debug, Template)]
#[template(path = "run_messages.html")]
pub struct MessagesPage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// The messages, live.
    pub list: MessageList,
    /// The form.
    pub form: MessageForm,
    /// The address of the page with earlier messages.
    pub older: Option<String>,
}

/// The form for a message.
#[derive(Debug, Clone)]
pub struct MessageForm {
    /// The path that it is sent to.
    pub path: String,
    /// The fields.
    pub fields: Vec<Field>,
    /// The reason why no message can be sent.
    pub off: Option<Words>,
}

/// The messages of a page.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/message_list.html")]
pub struct MessageList {
    /// The messages, the newest first.
    pub rows: Vec<MessageRow>,
}

/// One message, as the event stream sends it.
#[derive(Debug, Clone, Template)]
#[template(path = "parts/message_row.html")]
pub struct MessageRowPart {
    /// The message.
    pub row: MessageRow,
}

/// A message, a question, or a report of the agent.
#[derive(Debug, Clone)]
pub struct MessageRow {
    /// The id of the element.
    pub id: String,
    /// The kind, in words.
    pub kind: &'static str,
    /// The sender.
    pub by: Words,
    /// The time.
    pub at: Moment,
    /// The text. It may have several lines.
    pub text: String,
    /// The id of the question, which an answer repeats.
    pub question: Option<Words>,
}

/// The files of a run: its mounts, and the files that its session shares.
#[derive(Debug, Template)]
#[template(path = "run_files.html")]
pub struct FilesPage {
    /// The frame.
    pub frame: Frame,
    /// The head of the run.
    pub top: RunTop,
    /// The tabs.
    pub tabs: RunTabs,
    /// The paths of the mounts.
    pub mounts: Vec<Words>,
    /// The shares.
    pub shares: Vec<Share>,
    /// The command that mounts and lists files.
    pub same: Same,
}

/// A share of a session.
#[derive(Debug, Clone)]
pub struct Share {
    /// The title.
    pub title: Words,
    /// The kind, the size and the number of revisions.
    pub about: Words,
    /// The time of the last change.
    pub updated: Moment,
    /// The address of the file to show first.
    pub download: Option<String>,
}

/// Orders runs so that each stands behind its parent, and sets the depth of each.
#[must_use]
pub fn as_tree(root: &str, rows: Vec<(String, Option<String>, RunRow)>) -> Vec<RunRow> {
    fn below(
        parent: &str,
        depth: usize,
        rows: &[(String, Option<String>, RunRow)],
        shown: &mut Vec<RunRow>,
    ) {
        let children = rows.iter().filter(|(_, of, _)| of.as_deref() == Some(parent));
        for (id, _, row) in children {
            if shown.len() >= rows.len() {
                return;
            }
            shown.push(RunRow { depth, ..row.clone() });
            below(id, depth + 1, rows, shown);
        }
    }
    let mut shown = Vec::with_capacity(rows.len());
    below(root, 1, &rows, &mut shown);
    let missing: Vec<_> = rows
        .iter()
        .filter(|(_, _, row)| !shown.iter().any(|one| one.id == row.id))
        .map(|(_, _, row)| RunRow { depth: 1, ..row.clone() })
        .collect();
    shown.extend(missing);
    shown
}

#[cfg(test)]
mod tests {
    use super::{super::samples::row_of, *};

    /// Each run stands behind its parent, whatever the order of their numbers.
    #[test]
    fn runs_stand_behind_their_parents() {
        let row = |id: &str, parent: &str| {
            let row = RunRow { id: id.to_owned(), ..row_of("running", "") };
            (id.to_owned(), Some(parent.to_owned()), row)
        };
        let rows = vec![row("a", "root"), row("b", "root"), row("c", "a"), row("d", "gone")];
        let tree = as_tree("root", rows);
        let ids: Vec<_> = tree.iter().map(|row| (&*row.id, row.depth)).collect();
        assert_eq!(ids, [("a", 1), ("c", 2), ("b", 1), ("d", 1)]);
    }
}
