//! Samples of the pages of the registry, whose texts end in a given one.

use narthex_model::command::narthex;

use super::{
    Described, DraftForm, Failed, FoundList, FoundRow, InputPart, RegistryPage, RegistryServerPage,
    SearchResult, ServerResult, WayPart,
};
use crate::{
    Frame,
    parts::{
        Empty, Words,
        form::{Field, Input},
    },
};

const PATH: &str = "/w/default/registry";

fn words(text: &str, more: &str) -> Words {
    Words::new(&format!("{text}{more}"))
}

fn search(frame: Frame, more: &str, result: SearchResult) -> RegistryPage {
    RegistryPage {
        frame,
        registry: words("https://registry.example", more),
        words: more.chars().take(200).collect(),
        path: PATH.to_owned(),
        result: Some(result),
    }
}

fn failure(more: &str) -> Failed {
    Failed {
        kind: "unavailable",
        sentence: words("the registry https://registry.example does not answer", more),
        again: format!("{PATH}?q=weather"),
    }
}

/// A server that was found.
#[must_use]
pub fn row(more: &str) -> FoundRow {
    FoundRow {
        name: words("io.github.ada/weather", more),
        href: format!("{PATH}/server?name=io.github.ada%2Fweather"),
        version: words("1.4.0", more),
        publisher: words("io.github.ada", more),
        description: words("Forecasts for any place", more),
        status: Some(words("deprecated", more)),
        ways: words("npm, http", more),
    }
}

/// A search with one result.
#[must_use]
pub fn found(frame: Frame, more: &str) -> RegistryPage {
    let empty = Empty {
        title: "No server has these words",
        sentence: "Search for another word.".to_owned(),
        example: None,
        page: None,
    };
    let next = Some(format!("{PATH}?q=weather&after=io.github.ada%2Fweather"));
    let list = FoundList { rows: vec![row(more)], count: 60, next, is_cut: true, unread: 1, empty };
    search(frame, more, SearchResult::Found(list))
}

/// A search without an answer.
#[must_use]
pub fn failed(frame: Frame, more: &str) -> RegistryPage {
    search(frame, more, SearchResult::Failed(failure(more)))
}

/// A way for the catalog, and one that the catalog cannot have.
#[must_use]
pub fn ways(more: &str) -> Vec<WayPart> {
    let input = InputPart {
        name: words("WEATHER_KEY", more),
        place: words("the variable `WEATHER_KEY`", more),
        description: words("Key of the weather service", more),
        is_required: true,
        is_secret: true,
        default: Some(words("none", more)),
    };
    let short: String = more.chars().take(200).collect();
    let id = Field::new("id", "Id in the catalog", Input::line(&format!("weather{short}")))
        .in_row("0")
        .fault(Some(&format!("This id is taken.{more}")));
    let form = DraftForm {
        path: format!("{PATH}/add"),
        server: format!("io.github.ada/weather{short}"),
        version: format!("1.4.0{short}"),
        way: 0,
        id,
    };
    let way = |kind, draft| WayPart {
        kind,
        target: words("@ada/weather-mcp@1.4.0", more),
        is_image: kind == "oci",
        inputs: vec![input.clone()],
        draft,
    };
    vec![way("npm", Ok(form)), way("oci", Err(words("its image takes arguments", more)))]
}

/// A server with its ways.
#[must_use]
pub fn server(frame: Frame, more: &str) -> RegistryServerPage {
    let described = Described {
        name: words("io.github.ada/weather", more),
        version: words("1.4.0", more),
        description: words("Forecasts for any place", more),
        publisher: words("io.github.ada", more),
        source: Some(words("https://git.example/ada/weather", more)),
        website: Some(words("https://weather.example", more)),
        status: Some(words("deprecated: use another one", more)),
        ways: ways(more),
        unusable: vec![words("nuget: narthex cannot start it", more)],
        command: words(&narthex("add io.github.ada/weather", &[]).to_string(), more),
    };
    let result = ServerResult::Described(Box::new(described));
    RegistryServerPage { frame, back: PATH.to_owned(), result }
}
