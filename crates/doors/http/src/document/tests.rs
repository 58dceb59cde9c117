//! Checks that the document describes every route and no other, and that its references are
//! complete.

use std::collections::BTreeSet;

use narthex_model::ErrorKind;
use serde_json::json;

use super::*;
use crate::openapi::operations;

/// Every row of [`ROUTES`] by method. `HEAD` is left out, since it always comes with `GET`.
fn served() -> BTreeSet<(String, String)> {
    let rows = ROUTES.iter().flat_map(|route| {
        let methods = route.methods.split(", ").filter(|method| *method != "HEAD");
        methods.map(|method| (route.template.to_owned(), method.to_owned()))
    });
    rows.collect()
}

#[test]
fn every_served_route_has_one_description_and_every_description_a_route() {
    let said: Vec<_> =
        operations().map(|(path, method)| (path.to_owned(), method.to_owned())).collect();
    for (template, method) in served() {
        let place = (template.clone(), method.clone());
        let times = said.iter().filter(|one| **one == place).count();
        assert_eq!(
            times, 1,
            "`{method} {template}` of `routes.rs` has {times} descriptions: write one into a file \
             of `crates/doors/http/src/openapi/operations`, its types into \
             `crates/doors/http/src/shapes`, \
             and run `cargo xtask openapi`"
        );
        assert!(
            openapi()["paths"][&template][method.to_ascii_lowercase()].is_object(),
            "{method} {template}"
        );
    }
    for (template, method) in said {
        let is_served = served().contains(&(template.clone(), method.clone()));
        assert!(is_served, "`{method} {template}` is described, and not in `routes.rs`");
    }
}

#[test]
fn every_name_in_a_path_is_described() {
    for route in ROUTES {
        let braces = route.template.matches('{').count();
        let named = openapi()["paths"][route.template]["parameters"].as_array().map_or(0, Vec::len);
        let before = "name what stands in front of it in `SEGMENTS` of `http/src/openapi.rs`";
        assert_eq!(named, braces, "{}: {before}", route.template);
    }
}

#[test]
fn names_of_operations_are_unique() {
    let mut ids = BTreeSet::new();
    for (path, methods) in openapi()["paths"].as_object().unwrap() {
        for (method, one) in methods.as_object().unwrap().iter().filter(|(m, _)| *m != "parameters")
        {
            let id = one["operationId"].as_str().unwrap();
            let is_name = id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(is_name && !one["summary"].as_str().unwrap().is_empty(), "{method} {path}");
            assert!(ids.insert(id), "{id} is there twice");
            let responses = one["responses"].as_object().unwrap();
            assert!(responses.keys().any(|status| status.as_str() < "400"), "{id} answers nothing");
            for (status, said) in responses {
                assert_ne!(said["description"], "", "{id} says nothing of {status}");
            }
        }
    }
    assert!(ids.len() > ROUTES.len(), "{}", ids.len());
}

/// Every `$ref` has a target, and every component is referred to.
#[test]
fn every_reference_has_a_target_and_every_component_is_referred_to() {
    let mut found = BTreeSet::new();
    references(openapi(), &mut found);
    for place in &found {
        let pointer = place.strip_prefix('#').unwrap();
        assert!(openapi().pointer(pointer).is_some(), "{place} is not there");
    }
    for kind in ["schemas", "parameters", "headers"] {
        for name in openapi()["components"][kind].as_object().unwrap().keys() {
            let place = format!("#/components/{kind}/{name}");
            assert!(found.contains(&place), "{place} is referred to by nothing");
        }
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(place) = members.get("$ref").and_then(Value::as_str) {
                found.insert(place.to_owned());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

/// O81: the daemon's own objects have only the members that are described, at every level.
#[test]
fn our_own_objects_are_closed_at_every_level() {
    fn look(place: &str, value: &Value) {
        if value.get("properties").is_some() && value.get("type").is_some() {
            let is_said = value.get("additionalProperties").is_some();
            assert!(is_said, "{place}: say `additionalProperties`");
        }
        for (name, inner) in value.as_object().into_iter().flatten() {
            look(&format!("{place}.{name}"), inner);
        }
        for inner in value.as_array().into_iter().flatten() {
            look(place, inner);
        }
    }
    for (name, schema) in openapi()["components"]["schemas"].as_object().unwrap() {
        look(name, schema);
    }
}

/// O34: every answer with `items` has pages.
#[test]
fn o34_every_list_has_pages() {
    let mut pages = 0;
    for (path, methods) in openapi()["paths"].as_object().unwrap() {
        let Some(get) = methods.get("get") else { continue };
        let Some(schema) = get["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
            .as_str()
            .and_then(|place| openapi().pointer(place.strip_prefix('#')?))
        else {
            continue;
        };
        let is_list = get["operationId"].as_str().unwrap().ends_with("_list");
        let Some(items) = schema["properties"].get("items") else {
            assert!(!is_list, "{path} has no `items`");
            continue;
        };
        let most = match get["operationId"].as_str() {
            // The maximum number of events that an agent reads at once (X-D10).
            Some("session_events") => narthex_events::WINDOW,
            _ => crate::servers::page_sizes().1.into(),
        };
        assert_eq!(items["maxItems"], most, "{path}");
        assert!(schema["properties"].get("next").is_some(), "{path}");
        let asked = get["parameters"].to_string();
        for name in ["limit\"", "after\""] {
            assert!(asked.contains(name), "{path} is not asked for {name}: {asked}");
        }
        pages += 1;
    }
    assert!(pages >= 20, "{pages} lists were found");
}

/// D24: the document states the same limits and error kinds as the code.
#[test]
fn the_document_has_the_limits_and_kinds_of_the_code() {
    let kinds: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let schemas = &openapi()["components"]["schemas"];
    assert_eq!(schemas["ErrorKind"]["enum"], json!(kinds));
    let limit = &openapi()["components"]["parameters"]["limit"]["schema"];
    let (usual, most) = crate::servers::page_sizes();
    assert_eq!((&limit["default"], &limit["maximum"]), (&json!(usual), &json!(most)));
    let events: Vec<_> = narthex_events::EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(schemas["SessionEventType"]["enum"], json!(events));
    let calls: Vec<_> =
        narthex_model::CallErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(schemas["CallError"]["properties"]["kind"]["enum"], json!(calls));
}
