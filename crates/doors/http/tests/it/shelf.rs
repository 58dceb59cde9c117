//! A registry of others for tests: it has a few servers, and fails on command.

use narthex_http::{
    FindFault, Finding, FoundInput, FoundServer, FoundServers, FoundWay, PublicServers,
};
use narthex_model::ErrorKind;
use serde_json::json;

/// The word that makes a request fail.
pub(crate) const BROKEN: &str = "broken";

/// A registry with 45 servers.
#[derive(Debug)]
pub(crate) struct Shelf;

impl PublicServers for Shelf {
    fn address(&self) -> String {
        "https://registry.example".to_owned()
    }

    fn search<'a>(&'a self, words: &'a str) -> Finding<'a, FoundServers> {
        Box::pin(async move {
            let all = (0..45).map(|number| server(&format!("com.example/weather-{number:02}")));
            let servers = all.filter(|one| one.name.contains(words)).collect();
            let found = FoundServers { servers, is_cut: false, unread: 0 };
            if words == BROKEN { Err(fault()) } else { Ok(found) }
        })
    }

    fn describe<'a>(&'a self, name: &'a str, _: &'a str) -> Finding<'a, FoundServer> {
        Box::pin(async move { if name == BROKEN { Err(fault()) } else { Ok(server(name)) } })
    }
}

fn fault() -> FindFault {
    let sentence = "the registry https://registry.example does not answer".to_owned();
    FindFault { kind: ErrorKind::Unavailable, sentence }
}

fn server(name: &str) -> FoundServer {
    let key = FoundInput {
        name: "WEATHER_KEY".to_owned(),
        place: "the variable `WEATHER_KEY`".to_owned(),
        description: Some("<b>Key</b>".to_owned()),
        is_required: true,
        is_secret: true,
        default: Some("a-default-of-a-secret".to_owned()),
    };
    let schema = json!({ "type": "string", "kind": "secret", "env": "WEATHER_KEY" });
    let draft = json!({
        "name": "Weather", "disabled": true, "command": "npx", "args": ["-y", "weather@1.4.0"],
        "config_schema": { "WEATHER_KEY": schema },
    });
    let npm = FoundWay {
        kind: "npm",
        target: "weather@1.4.0".to_owned(),
        inputs: vec![key],
        draft: Ok(draft),
    };
    let image = FoundWay {
        kind: "oci",
        target: "registry.example/weather:1".to_owned(),
        inputs: Vec::new(),
        draft: Err("its image takes arguments".to_owned()),
    };
    FoundServer {
        name: name.to_owned(),
        version: "1.4.0".to_owned(),
        description: "Forecasts <b>for</b> any place".to_owned(),
        publisher: "com.example".to_owned(),
        ways: vec![npm, image],
        unusable: vec!["nuget: narthex cannot start it".to_owned()],
        ..FoundServer::default()
    }
}
