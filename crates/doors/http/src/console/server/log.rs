//! The standard error of a server: the last lines, live, and all stored lines as a file.

use http::{HeaderValue, StatusCode, header};
use narthex_console::{
    html,
    pages::server::log::{Log, LogBlock, ServerLogPage},
    parts::{Same, Words},
};
use narthex_model::command::narthex;
use narthex_registry::{LogPart, ServerRow};

use super::spot::{self, Tabbed};
use crate::{
    Access,
    console::{
        answer::{self, Answered},
        frame::{self, Head, frame},
        live::{self, Follows, Fragment, Live, SERVER, Topic},
        rows,
        viewer::Viewer,
    },
    problem::Problem,
    servers::Query,
};

/// The live part of the page.
pub(in crate::console) const TOPIC: Topic = Topic {
    name: "log",
    access: Access::Operator,
    params: &[SERVER],
    follows: Follows::Log,
    parts: |viewer, query| Box::pin(async move { parts(viewer, query) }),
};

/// Number of lines of a block: a further line sends one block, and not the whole log.
const BLOCK: u64 = 20;
/// Maximum number of characters of a line on the page.
const LINE_MAX: usize = 1_000;
/// Maximum number of bytes of all lines on the page, as HTML.
const SHOWN_MAX: usize = 60_000;
/// Number of bytes of the markup around a line.
const AROUND: usize = 20;
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&[])?;
    let name = viewer.segment(0);
    let (_, row) = spot::find(viewer, &name)?;
    let log = read(&row);
    let head = Head {
        title: Words::new(&format!("Log of {name}")),
        sentence: "What the program of the server writes to standard error, over all its starts.",
        same: Some(Same::new(
            &narthex("mcp logs {} --follow", &[&name]).to_string(),
            &format!("GET /api/servers/{name}/logs"),
        )),
    };
    let mut frame = frame(viewer, head).await?;
    let live = vec![frame::live(&frame), Live { topic: &TOPIC, parts: parts_of(&log) }];
    frame.live = Some(live::address(viewer, live, &query.with(SERVER, &name)));
    let page = ServerLogPage {
        frame,
        tabs: spot::tabs(viewer, &row, Tabbed::Log),
        log,
        file: rows::path(viewer, &name, "log.txt"),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// All stored lines as a file.
pub(super) async fn file(viewer: &Viewer<'_>) -> Answered {
    viewer.query(&[])?;
    let name = viewer.segment(0);
    spot::find(viewer, &name)?;
    let mut text = String::new();
    for line in viewer.control().logs(&name)? {
        text.push_str(&line);
        text.push('\n');
    }
    let mut response = answer::page(StatusCode::OK, text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, TEXT);
    if let Ok(value) = HeaderValue::from_str(&attachment(&name)) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// The header that names the file. Other characters than those of aliases become `_`.
fn attachment(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    format!("attachment; filename=\"{name}.log.txt\"")
}

fn parts(viewer: &Viewer<'_>, query: &Query) -> Result<Vec<Fragment>, Problem> {
    let (_, row) = spot::find(viewer, query.text(SERVER))?;
    Ok(parts_of(&read(&row)))
}

fn parts_of(log: &Log) -> Vec<Fragment> {
    let key: Vec<_> = log.blocks.iter().map(|block| block.number).collect();
    let blocks = log.blocks.iter();
    let blocks = blocks.map(|block| Fragment::new(format!("log-{}", block.number), html(block)));
    std::iter::once(Fragment::around("server-log", html(log), &key)).chain(blocks).collect()
}

fn read(row: &ServerRow) -> Log {
    let none = match row.definition.as_ref().map(|definition| definition.transport().as_str()) {
        Some("stdio") => "The program has written nothing since the daemon started.",
        Some(_) => "The server is no program of this machine, so that it has no log here.",
        None => "The entry of the server has a fault, so that it was not started.",
    };
    Log { none, ..shown(&row.log.read_from(0)) }
}

/// The last lines that a page has room for, in blocks that begin at fixed numbers of lines.
fn shown(part: &LogPart) -> Log {
    let mut room = SHOWN_MAX;
    let lines: Vec<_> = part.lines.iter().map(|line| Words::within(line, LINE_MAX)).collect();
    let fits = |line: &&Words| match room.checked_sub(cost(line)) {
        Some(rest) => {
            room = rest;
            true
        }
        None => false,
    };
    let count = lines.iter().rev().take_while(fits).count();
    let left_out = lines.len() - count;
    let first = part.next.saturating_sub(u64::try_from(count).unwrap_or(u64::MAX));
    let mut blocks: Vec<LogBlock> = Vec::new();
    for (number, line) in (first..).zip(lines.into_iter().skip(left_out)) {
        let number = number / BLOCK;
        match blocks.last_mut().filter(|block| block.number == number) {
            Some(block) => block.lines.push(line),
            None => blocks.push(LogBlock { number, lines: vec![line] }),
        }
    }
    Log { blocks, left_out, none: "" }
}

/// Number of bytes of a line as HTML, or more.
fn cost(line: &Words) -> usize {
    let one = |c: char| if matches!(c, '<' | '>' | '&' | '"' | '\'') { 6 } else { c.len_utf8() };
    AROUND + line.as_str().chars().map(one).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(lines: &[String], next: u64) -> LogPart {
        LogPart { missed: 0, lines: lines.to_vec(), next }
    }

    /// Blocks begin at the same lines whenever the log is read, so that a further line changes the
    /// last block alone.
    #[test]
    fn a_further_line_changes_the_last_block_alone() {
        let lines: Vec<_> = (0..50).map(|number| format!("line {number}")).collect();
        let before = shown(&part(lines.get(..45).unwrap(), 45));
        let after = shown(&part(lines.get(..46).unwrap(), 46));
        let numbers = |log: &Log| log.blocks.iter().map(|block| block.number).collect::<Vec<_>>();
        assert_eq!(numbers(&before), [0, 1, 2]);
        assert_eq!(numbers(&after), [0, 1, 2]);
        let (before, after) = (parts_of(&before), parts_of(&after));
        let same: Vec<_> =
            before.iter().zip(&after).map(|(one, other)| one.key == other.key).collect();
        assert_eq!(same, [true, true, true, false]);
    }

    /// S11: a page has the newest lines, and not more than it has room for, whatever is in them.
    #[test]
    fn s11_long_lines_leave_the_page_small() {
        let lines = vec!["<b>".repeat(100_000); 256];
        let log = shown(&part(&lines, 1_000));
        assert!(html(&log).len() < 80_000, "{}", html(&log).len());
        let count: usize = log.blocks.iter().map(|block| block.lines.len()).sum();
        assert_eq!(count + log.left_out, 256);
        assert!(log.left_out > 0 && count > 0);
        assert_eq!(shown(&part(&[], 7)).blocks.len(), 0);
    }

    #[test]
    fn names_of_files_are_plain() {
        assert_eq!(attachment("a b\"\r\n"), "attachment; filename=\"a_b___.log.txt\"");
    }
}
