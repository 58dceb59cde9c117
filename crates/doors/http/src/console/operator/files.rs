//! The files of the configuration, in the order in which they count, and their faults.

use http::StatusCode;
use narthex_console::{
    Told, html,
    pages::operator::OperatorFilesPage,
    parts::{
        Action, Empty, Moment, Same, Words,
        item::{Badge, Dated, Item},
    },
};
use narthex_control::FileStatus;
use narthex_model::{Provenance, command::narthex};

use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
    shapes::CsrfForm,
};

pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["done"])?;
    let is_read = query.word("done", &["", "reload"])? == "reload";
    let mut files = viewer.control().files();
    files.sort_by_key(|file| (place(file.provenance), file.file.clone()));
    let head = Head {
        title: Words::new("Files"),
        sentence: "The files with servers that the daemon follows, in the order in which they \
                   count.",
        same: Some(Same::new(&narthex("mcp list --json", &[]).to_string(), "GET /api/files")),
    };
    let mut frame = frame(viewer, head).await?;
    frame.told = is_read.then(|| told(&files));
    let hint = "changes in the files count at once; files that are followed are read by themselves";
    let settings = viewer.control().variables().file();
    let page = OperatorFilesPage {
        frame,
        files: files.iter().map(|file| item(viewer, file)).collect(),
        settings: settings.map(|path| Words::new(&path.display().to_string())),
        reload: Action::new(viewer.path("files/reload"), "Read the files again", hint)
            .primary()
            .page(),
        command: Words::new(&narthex("mcp reload", &[]).to_string()),
        request: Words::new("POST /api/reload"),
        empty: empty(),
    };
    Ok(answer::page(StatusCode::OK, html(&page)))
}

/// The place of a layer: a later one counts instead of an earlier one.
fn place(provenance: Provenance) -> usize {
    match provenance {
        Provenance::Settings => 0,
        Provenance::Workspace => 1,
        Provenance::Programmatic => 2,
    }
}

fn item(viewer: &Viewer<'_>, file: &FileStatus) -> Item {
    let mut item = Item::new(&viewer.csrf, "");
    item.title = Words::new(&file.file.display().to_string());
    item.badge = Some(match (&file.error, file.gone_since, file.is_present) {
        (Some(_), _, _) => Badge { class: "error", icon: "warning", word: "refused" },
        (None, Some(_), _) => Badge { class: "error", icon: "warning", word: "gone" },
        (None, None, true) => Badge::fine("in use"),
        (None, None, false) => Badge::off("not there"),
    });
    item.note = file.error.as_deref().map(Words::new);
    item.facts.push(Words::new(match file.provenance {
        Provenance::Settings => "read first: the user's own servers",
        Provenance::Workspace => "read then: the project's servers, which count for the same name",
        Provenance::Programmatic => "set by a program",
    }));
    if file.error.is_some() {
        item.facts.push(Words::new(match file.is_present {
            true => "an earlier content stays in use",
            false => "no content of it is in use",
        }));
    }
    let times = [
        ("content in use since", file.applied_at),
        ("last read", file.last_read),
        ("refused since", file.refused_since),
        ("gone since", file.gone_since),
    ];
    let dated =
        |(label, at): (&'static str, Option<_>)| Some(Dated { label, at: Moment::new(at?) });
    item.times.extend(times.into_iter().filter_map(dated));
    item
}

/// The sentence for the last reading, by the present state of the files.
fn told(files: &[FileStatus]) -> Told {
    let count = files.iter().filter(|file| file.error.is_some()).count();
    let sentence = match count {
        0 => "The files were read again.".to_owned(),
        1 => "The files were read again, and one of them is refused.".to_owned(),
        _ => format!("The files were read again, and {count} of them are refused."),
    };
    Told { sentence: Words::new(&sentence), is_failure: count > 0 }
}

fn empty() -> Empty {
    Empty {
        title: "No file is followed",
        sentence: "The daemon was started without files of servers.".to_owned(),
        example: Some(narthex("mcp add git -- uvx mcp-server-git", &[]).to_string()),
        page: Some("docs/reference/configuration.md"),
    }
}

/// Reads the files again, as the API does.
pub(super) async fn reload(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let CsrfForm { csrf: _ } = viewer.form(body).await?;
    viewer.control().reload().await?;
    answer::redirect(&viewer.path("files?done=reload"))
}
