//! Samples of the pages, whose texts end in a given one.

use narthex_model::command::narthex;

use super::{
    AgentForm, AgentPage, AgentRow, AgentsPage, Attached, Delete, Effective, EffectiveKey,
    EffectiveServer, NewAgent, Piece, RunForm, Source, Unset,
};
use crate::{
    Frame,
    parts::{
        Empty, Filter, Words,
        form::{Field, Input, Origin},
    },
};

/// The list of agents in a frame.
#[must_use]
pub fn list_of(frame: Frame, more: &str) -> AgentsPage {
    let row = |name: &str| AgentRow {
        href: "/w/default/agents/reader".to_owned(),
        name: words(name, more),
        about: words("Reads papers.", more),
        facts: vec![words("worker", more), words("2 servers", more)],
        injected: vec![words("GITHUB_TOKEN", more)],
        fault: Some(words("the stored form cannot be used", more)),
    };
    AgentsPage {
        frame,
        rows: vec![row("reader"), row("writer")],
        next: Some("/w/default/agents?after=writer".to_owned()),
        filtered: more.chars().take(64).collect(),
        filters: vec![Filter {
            href: "/w/default/agents".to_owned(),
            label: format!("with “{}” ✕", words("papers", more)),
            count: None,
            is_current: true,
        }],
        kept: vec![("capability", more.chars().take(64).collect())],
        path: "/w/default/agents".to_owned(),
        create: Some(NewAgent {
            path: "/w/default/new-agent".to_owned(),
            label: "New agent",
            fields: vec![field("name", more)],
            faults: vec![words("the workspace is full", more)],
            is_open: true,
        }),
        empty: Empty {
            title: "No agents yet",
            sentence: "An agent has servers.".to_owned(),
            example: Some(narthex("agents apply --file agent.yaml", &[]).to_string()),
            page: Some("docs/guides/catalog.md"),
        },
    }
}

/// One agent in a frame.
#[must_use]
pub fn page_of(frame: Frame, more: &str) -> AgentPage {
    AgentPage {
        frame,
        injected: vec![words("GITHUB_TOKEN", more)],
        faults: vec![words("a fault without a field", more)],
        unset: vec![Unset {
            name: words("DOCS_KEY", more),
            href: "/w/default/secrets?q=DOCS_KEY".to_owned(),
        }],
        form: form_of(more),
        effective: effective_of(more),
        delete: Some(Delete {
            path: "/w/default/agents/reader/delete".to_owned(),
            breaks: vec![words("agents.writer.capabilities[0]", more)],
            is_forced: true,
        }),
        back: "/w/default/agents".to_owned(),
    }
}

fn form_of(more: &str) -> AgentForm {
    AgentForm {
        path: "/w/default/agents/reader/edit".to_owned(),
        tag: "0a1b".to_owned(),
        is_editable: true,
        about: vec![field("description", more)],
        capabilities: vec![Field::new("cap.papers", "papers", Input::Check { is_on: true })],
        attached: vec![Attached {
            id: "at-library".to_owned(),
            alias: words("library", more),
            server: words("docs", more),
            about: words("Papers to read.", more),
            reference: "at.library".to_owned(),
            id_of_server: "docs".to_owned(),
            fields: vec![field("v.library.context_id", more)],
            is_new: true,
        }],
        attach: vec![field("attach.server", more)],
        sources: vec![Source {
            text: words("${scope.context_id}", more),
            about: words("the scope of the run", more),
        }],
        kept: vec![words("limits", more)],
        run: Some(RunForm {
            fields: vec![field("param.topic", more)],
            has_preview: true,
            start: "/w/default/agents/reader/start".to_owned(),
            off: None,
        }),
    }
}

/// The effective configuration: a value that overrides two, a removed one, and a conflict.
#[must_use]
pub fn effective_of(more: &str) -> Effective {
    let origin =
        |from: &str, value: &str| Origin::new(&format!("{from}{more}"), &format!("{value}{more}"));
    let piece = |text: &str, is_source| Piece { text: words(text, more), is_source };
    let key = |name: &str| EffectiveKey {
        name: words(name, more),
        value: vec![piece("${scope.context_id}", true), piece("/papers", false)],
        is_removed: false,
        from: words("this agent", more),
        carrier: Some(words("the header x-context-id", more)),
        losers: vec![origin("the capability papers", "archive"), origin("the catalog", "default")],
        conflicts: Vec::new(),
        in_run: Some(words("ctx-9/papers", more)),
    };
    let disputed = EffectiveKey {
        losers: Vec::new(),
        conflicts: vec![origin("the capability papers", "a"), origin("the capability web", "b")],
        ..key("workflow_id")
    };
    Effective {
        sentence: words("Each value with the level that gives it.", more),
        servers: vec![EffectiveServer {
            alias: words("library", more),
            about: words("docs, http", more),
            keys: vec![
                key("context_id"),
                EffectiveKey { is_removed: true, ..key("api_key") },
                disputed,
            ],
            faults: vec![words("`token` has no value", more)],
            warnings: vec![words("an empty text narrows nothing", more)],
        }],
        faults: vec![words("a capability is missing", more)],
        run: Some(words("A run with these inputs would be refused.", more)),
        run_faults: vec![words("`run.params.topic` is missing", more)],
    }
}

fn field(name: &str, more: &str) -> Field {
    let more: String = more.chars().take(200).collect();
    let label = |text: &str| format!("{text}{more}");
    let input = Input::Line { value: label("value"), example: label("example") };
    Field::new(name, &label("Label"), input)
        .help(&label("A sentence."))
        .fault(Some(&label("A fault.")))
        .origins(vec![Origin::new(&label("this agent"), &label("value"))])
}

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}
