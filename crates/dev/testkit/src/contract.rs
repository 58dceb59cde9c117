//! Holds answers against an OpenAPI document: status, type, headers and body must be described.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};
use http::{HeaderMap, Method, StatusCode, header};
use jsonschema::Validator;
use serde_json::{Value, json};

/// Headers that an answer has only if its description names them.
const SAID: [&str; 7] = [
    "etag",
    "idempotency-replayed",
    "location",
    "mcp-session-id",
    "retry-after",
    "set-cookie",
    "www-authenticate",
];
const PROBLEM: &str = "application/problem+json";

/// An OpenAPI document that answers are compared with.
#[derive(Debug)]
pub struct Contract {
    document: &'static Value,
    /// The compiled validators, by the pointer of their schema.
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

/// An answer, and its request.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The method of the request.
    pub method: &'a Method,
    /// The request's path, without the query.
    pub path: &'a str,
    /// The status of the answer.
    pub status: StatusCode,
    /// The answer's headers.
    pub headers: &'a HeaderMap,
    /// The answer's body. `None` if it was not read.
    pub body: Option<&'a [u8]>,
}

impl Contract {
    /// The contract of this document.
    #[must_use]
    pub fn new(document: &'static Value) -> Self {
        Self { document, validators: Mutex::default() }
    }

    /// Checks that an answer is described.
    ///
    /// # Panics
    /// When it is not, with what is wrong and where to describe it.
    #[track_caller]
    pub fn check(&self, seen: Seen<'_>) {
        if let Err(error) = self.is_described(seen) {
            let Seen { method, path, status, body, .. } = seen;
            let body = String::from_utf8_lossy(body.unwrap_or_default());
            panic!(
                "{method} {path} answered {status}, which is not described: {error:#}\n{body}\n\
                 describe it in crates/doors/http/src/openapi, and run `cargo xtask openapi`"
            );
        }
    }

    /// Checks that an answer is described in all parts.
    ///
    /// # Errors
    /// The first part that is not.
    pub fn is_described(&self, seen: Seen<'_>) -> Result<()> {
        let Some((template, place)) = self.place(seen.path) else {
            return self.refused(seen, &[401, 403, 404]);
        };
        let method = seen.method.as_str().to_ascii_lowercase();
        let Some(operation) = place.get(&method) else {
            return self.refused(seen, &[401, 403, 404, 405]);
        };
        let responses = operation["responses"].as_object().context("it has no responses")?;
        let known: Vec<&String> = responses.keys().collect();
        let status = seen.status.as_str();
        let response =
            responses.get(status).with_context(|| format!("the statuses are {known:?}"))?;
        self.headers(seen, response)?;
        let content = response.get("content").and_then(Value::as_object);
        let (Some(content), false) = (content, seen.method == Method::HEAD) else {
            let is_empty = seen.method == Method::HEAD || seen.body.unwrap_or_default().is_empty();
            ensure!(is_empty, "it has a body");
            return Ok(());
        };
        let media = media(seen.headers).context("it has no content type")?;
        let known: Vec<&String> = content.keys().collect();
        let described = content.get(media).or_else(|| content.get("*/*"));
        let described = described.with_context(|| format!("{media} is none of {known:?}"))?;
        let Some(body) = seen.body else { return Ok(()) };
        let pointer = |part: &str| {
            let [template, media] = [template, media].map(|text| text.replace('~', "~0"));
            let [template, media] = [template, media].map(|text| text.replace('/', "~1"));
            let place = format!("#/paths/{template}/{method}/responses/{status}/content/{media}");
            format!("{place}/{part}")
        };
        if described.get("x-event").is_some() {
            let pointer = pointer("x-event");
            return events(body).try_for_each(|event| self.fits(&pointer, event?));
        }
        match described.get("schema").filter(|schema| schema["type"] != "string") {
            Some(_) => self.fits(&pointer("schema"), serde_json::from_slice(body)?),
            None => Ok(()),
        }
    }

    /// Checks a value against the schema at a place of the document, such as
    /// `#/components/schemas/Problem`.
    ///
    /// # Errors
    /// When the schema is none, or the value does not fit it.
    pub fn fits(&self, pointer: &str, value: Value) -> Result<()> {
        let validator = self.validator(pointer)?;
        let faults: Vec<_> = validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        ensure!(faults.is_empty(), "{}", faults.join("; "));
        Ok(())
    }

    fn validator(&self, pointer: &str) -> Result<Arc<Validator>> {
        let mut known = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(validator) = known.get(pointer) {
            return Ok(validator.clone());
        }
        let schema = self.document.pointer(&pointer[1..]).context("no such schema")?;
        // References lead into the components, so these come along.
        let whole = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": { "schemas": self.document["components"]["schemas"] },
            "allOf": [schema],
        });
        let validator = jsonschema::validator_for(&whole)
            .map_err(|error| anyhow::anyhow!("{pointer} is no schema: {error}"))?;
        let validator = Arc::new(validator);
        known.insert(pointer.to_owned(), validator.clone());
        Ok(validator)
    }

    /// The description of a path; of two that fit, the one with fewer braces.
    fn place(&self, path: &str) -> Option<(&'static str, &'static Value)> {
        // The endpoints of MCP are the same with a slash behind them.
        let is_endpoint = path.starts_with("/mcp") && path.split('/').count() <= 5;
        let path = path.strip_suffix('/').filter(|_| is_endpoint).unwrap_or(path);
        let paths = self.document["paths"].as_object()?;
        let fitting = paths.iter().filter(|(template, _)| is_at(template, path));
        let found = fitting.min_by_key(|(template, _)| template.matches('{').count())?;
        Some((found.0, found.1))
    }

    /// A refusal of what there is not.
    fn refused(&self, seen: Seen<'_>, statuses: &[u16]) -> Result<()> {
        let status = seen.status.as_u16();
        ensure!(statuses.contains(&status), "it is not there, so it should be one of {statuses:?}");
        ensure!(media(seen.headers) == Some(PROBLEM), "refusals are problems");
        if status == 405 {
            ensure!(seen.headers.contains_key(header::ALLOW), "it does not say what is allowed");
        }
        match seen.body.filter(|_| seen.method != Method::HEAD) {
            Some(body) => self.fits("#/components/schemas/Problem", serde_json::from_slice(body)?),
            None => Ok(()),
        }
    }

    fn headers(&self, seen: Seen<'_>, response: &Value) -> Result<()> {
        let described = response.get("headers").and_then(Value::as_object);
        let is_described = |name: &str| {
            let mut names = described.into_iter().flatten().map(|(name, _)| name);
            names.any(|one| one.eq_ignore_ascii_case(name))
        };
        for name in SAID {
            if seen.headers.contains_key(name) && !is_described(name) {
                bail!("the header {name} is not described");
            }
        }
        Ok(())
    }
}

fn is_at(template: &str, path: &str) -> bool {
    let (mut template, mut path) = (template.split('/'), path.split('/'));
    loop {
        match (template.next(), path.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other => {}
            // All that is left, whatever it has.
            (Some("{path}"), Some(_)) => return template.next().is_none(),
            (Some(one), Some(other)) if one.starts_with('{') && !other.is_empty() => {}
            _ => return false,
        }
    }
}

/// The content type without its parameters.
fn media(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or(text).trim())
}

/// The data of the events of a whole stream.
fn events(body: &[u8]) -> impl Iterator<Item = Result<Value>> {
    let lines = body.split(|byte| *byte == b'\n');
    let data =
        lines.filter_map(|line| line.strip_prefix(b"data: ")).filter(|data| !data.is_empty());
    data.map(|data| Ok(serde_json::from_slice(data)?))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
        let schema = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let content = |schema: Value| json!({ "application/json": { "schema": schema } });
        json!({
            "paths": {
                "/things/{id}": { "get": { "responses": {
                    "200": { "content": content(schema("Thing")), "headers": { "ETag": {} } },
                    "204": {},
                } } },
            },
            "components": { "schemas": {
                "Thing": {
                    "type": "object",
                    "properties": { "name": schema("Name") },
                    "required": ["name"],
                    "additionalProperties": false,
                },
                "Name": { "type": "string", "maxLength": 3 },
                "Problem": { "type": "object", "required": ["detail"] },
            } },
        })
    });

    /// The finding about an answer with these properties: status, content type, a header, body.
    fn told(path: &str, status: u16, kind: &str, header: &'static str, body: &str) -> String {
        let mut headers = HeaderMap::new();
        if !kind.is_empty() {
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        }
        if !header.is_empty() {
            headers.insert(header, "x".parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        let body = Some(body.as_bytes());
        let seen = Seen { method: &Method::GET, path, status, headers: &headers, body };
        Contract::new(&DOCUMENT).is_described(seen).err().map_or(String::new(), |e| e.to_string())
    }

    /// O81.
    #[test]
    fn answers_beyond_the_description_are_reported() {
        let json = "application/json; charset=utf-8";
        let fine = r#"{"name":"abc"}"#;
        assert_eq!(told("/things/1", 200, json, "etag", fine), "");
        assert_eq!(told("/things/1", 204, "", "", ""), "");
        let table = [
            (told("/things/1", 200, json, "", r#"{"name":"abcd"}"#), "/name"),
            (told("/things/1", 200, json, "", r#"{"name":"abc","more":1}"#), "more"),
            (told("/things/1", 200, json, "", "{}"), "name"),
            (told("/things/1", 200, json, "location", fine), "location"),
            (told("/things/1", 200, "text/plain", "", fine), "text/plain"),
            (told("/things/1", 200, "", "", fine), "content type"),
            (told("/things/1", 201, json, "", fine), "statuses"),
            (told("/things/1", 204, "", "", "x"), "body"),
            (told("/other", 200, json, "", fine), "not there"),
            (told("/other", 404, json, "", fine), "problems"),
            (told("/other", 404, PROBLEM, "", "{}"), "detail"),
        ];
        for (told, expected) in table {
            assert!(told.contains(expected), "{told:?} without {expected:?}");
        }
        assert_eq!(told("/other", 404, PROBLEM, "", r#"{"detail":"x"}"#), "");
    }
}
