//! One server of the registry: its publisher's words, its ways, and the values that each takes.

use http::StatusCode;
use narthex_console::{
    html,
    pages::registry::{Described, DraftForm, InputPart, RegistryServerPage, ServerResult, WayPart},
    parts::{
        Same, Words,
        form::{Field, Input},
    },
};
use narthex_model::{ErrorKind, command::narthex};

use super::{
    finder::{asked, failed},
    places::{SERVERS, of_server},
};
use crate::{
    FindFault, FoundInput, FoundServer, FoundWay, PublicServers,
    console::{
        answer::{self, Answered},
        frame::{Head, frame},
        viewer::Viewer,
    },
};

/// The newest version.
const LATEST: &str = "latest";
/// Number of values of a way that the page shows.
const INPUTS: usize = 60;
/// Length of the longest id in the catalog.
const ID_MAX: usize = 64;

/// An id that was refused, with the reason.
pub(super) struct RefusedId {
    pub(super) way: usize,
    pub(super) id: String,
    pub(super) fault: String,
}

/// Shows the server of the address.
pub(super) async fn show(viewer: &Viewer<'_>) -> Answered {
    let query = viewer.query(&["name", "version"])?;
    let version = match query.text("version") {
        "" => LATEST,
        version => version,
    };
    let found = described(viewer, query.text("name"), version).await;
    page(viewer, query.text("name"), version, found, None).await
}

/// The description of a server.
pub(super) async fn described(
    viewer: &Viewer<'_>,
    name: &str,
    version: &str,
) -> Result<FoundServer, FindFault> {
    if name.is_empty() {
        let sentence = "no server is named; search for one".to_owned();
        return Err(FindFault { kind: ErrorKind::NotFound, sentence });
    }
    asked(viewer)?.describe(name, version).await
}

/// The page of a server, with the reason why an id was refused.
pub(super) async fn page(
    viewer: &Viewer<'_>,
    name: &str,
    version: &str,
    found: Result<FoundServer, FindFault>,
    refused: Option<RefusedId>,
) -> Answered {
    let at = asked(viewer).map_or_else(|fault| fault.sentence, PublicServers::address);
    let request = format!("GET {at}{SERVERS}/{name}/versions/{version}");
    let add = narthex("add {} --dry-run", &[&name]).to_string();
    let title = if name.is_empty() { "A server of the registry" } else { name };
    let head = Head {
        title: Words::within(title, 200),
        sentence: "What its publisher says, how it starts, and what it will ask for.",
        same: (!name.is_empty()).then(|| Same::new(&add, &request)),
    };
    let status = match (&found, &refused) {
        (Ok(_), Some(_)) => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::OK,
    };
    let result = match found {
        Ok(found) => ServerResult::Described(Box::new(shown(viewer, &found, refused.as_ref()))),
        Err(fault) => ServerResult::Failed(failed(fault, of_server(viewer, name, version))),
    };
    let frame = frame(viewer, head).await?;
    let page = RegistryServerPage { frame, back: viewer.path("registry"), result };
    Ok(answer::page(status, html(&page)))
}

fn shown(viewer: &Viewer<'_>, found: &FoundServer, refused: Option<&RefusedId>) -> Described {
    let ways = found.ways.iter().enumerate().map(|(number, way)| {
        let refused = refused.filter(|one| one.way == number);
        part(viewer, found, number, way, refused)
    });
    Described {
        name: Words::within(&found.name, 200),
        version: Words::within(&found.version, 60),
        description: Words::within(&found.description, 2_000),
        publisher: Words::within(&found.publisher, 200),
        source: found.source.as_deref().map(Words::new),
        website: found.website.as_deref().map(Words::new),
        status: found.status.as_deref().map(Words::new),
        ways: ways.collect(),
        unusable: found.unusable.iter().map(|one| Words::new(one)).collect(),
        command: Words::new(&narthex("add {}", &[&found.name]).to_string()),
    }
}

fn part(
    viewer: &Viewer<'_>,
    found: &FoundServer,
    number: usize,
    way: &FoundWay,
    refused: Option<&RefusedId>,
) -> WayPart {
    let draft = match &way.draft {
        Ok(_) => {
            let id = refused.map_or_else(|| id_of(&found.name), |one| one.id.clone());
            let fault = refused.map(|one| one.fault.as_str());
            Ok(DraftForm {
                path: viewer.path("registry/add"),
                server: found.name.clone(),
                version: found.version.clone(),
                way: number,
                id: Field::new("id", "Id in the catalog", Input::line(&id))
                    .in_row(&number.to_string())
                    .help("It never changes. The draft is disabled until you enable it.")
                    .fault(fault)
                    .required(),
            })
        }
        Err(why) => Err(Words::new(why)),
    };
    WayPart {
        kind: way.kind,
        target: Words::new(&way.target),
        is_image: way.kind == "oci",
        inputs: way.inputs.iter().take(INPUTS).map(input).collect(),
        draft,
    }
}

fn input(of: &FoundInput) -> InputPart {
    let FoundInput { name, place, description, is_required, is_secret, default } = of;
    InputPart {
        name: Words::within(name, 100),
        place: Words::within(place, 150),
        description: Words::within(description.as_deref().unwrap_or_default(), 300),
        is_required: *is_required,
        is_secret: *is_secret,
        // The default of a secret is no key of anyone, and yet nothing to show.
        default: default.as_deref().filter(|_| !is_secret).map(|text| Words::within(text, 100)),
    }
}

/// An id of the catalog made of the last part of a name.
fn id_of(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let plain = last.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let words: Vec<_> = plain.split('-').filter(|word| !word.is_empty()).collect();
    let joined = words.join("-");
    let id = joined.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let id: String = id.chars().take(ID_MAX).collect();
    if id.is_empty() { "server".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_the_rule_of_the_catalog() {
        let table = [
            ("io.github.ada/weather", "weather"),
            ("com.example/My__Docs.v2", "my-docs-v2"),
            ("com.example/42-answers", "answers"),
            ("com.example/…", "server"),
            ("", "server"),
        ];
        for (name, id) in table {
            assert_eq!(id_of(name), id, "{name}");
        }
        assert_eq!(id_of(&"x".repeat(500)).len(), ID_MAX);
    }
}
