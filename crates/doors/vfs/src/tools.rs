//! The facts about one tool in a list of tools.

use bytes::Bytes;
use narthex_model::json::with_whole_pairs;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Code, Failure, Kind};

/// A tool as its server lists it, so far as files show it.
#[derive(Debug, Deserialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow)]
    name: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    title: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    description: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
}

/// A list of anything that has a name or a URI.
#[derive(Debug, Deserialize)]
struct List<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    resources: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    prompts: Vec<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Named<'a> {
    #[serde(borrow, default)]
    name: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    uri: std::borrow::Cow<'a, str>,
}

/// The names in a list: of tools and prompts, or the URIs of resources, in the server's order.
///
/// # Errors
/// When it is no result of a list (`DRIVER`).
pub fn names(kind: Kind, list: &[u8]) -> Result<Vec<String>, Failure> {
    let read = || {
        let list = parsed(list)?;
        let items = match kind {
            Kind::Tools => list.tools,
            Kind::Resources => list.resources,
            Kind::Prompts => list.prompts,
        };
        let name = |item: &RawValue| {
            let text = with_whole_pairs(item.get().as_bytes());
            let named: Named<'_> = serde_json::from_slice(&text)?;
            let name = if kind == Kind::Resources { named.uri } else { named.name };
            Ok(name.into_owned())
        };
        items.into_iter().map(name).collect::<Result<Vec<_>, serde_json::Error>>()
    };
    let names = read().map_err(|error| no_list(kind, &error))?;
    Ok(names.into_iter().filter(|name| !name.is_empty()).collect())
}

/// An object only: a sequence would be read as its members in order.
fn parsed(list: &[u8]) -> Result<List<'_>, serde_json::Error> {
    let object: &RawValue = serde_json::from_slice(list)?;
    match object.get().starts_with('{') {
        true => serde_json::from_str(object.get()),
        false => Err(serde::de::Error::custom("it is not an object")),
    }
}

fn no_list(kind: Kind, error: &serde_json::Error) -> Failure {
    let text = format!("the server's list of {} is not valid: {error}", kind.as_str());
    Failure::new(Code::Driver, "server_error", text)
}

/// The schema of a tool's arguments as its server lists it; that of any object if it lists none.
pub(crate) fn schema(list: &[u8], tool: &str) -> Result<Bytes, Failure> {
    let tool = find(list, tool)?;
    let schema = tool.input_schema.map_or(r#"{"type":"object"}"#, RawValue::get);
    Ok(Bytes::from(format!("{schema}\n")))
}

/// The description of a tool as Markdown: its name, its description, its schemas, and its usage.
pub(crate) fn description(list: &[u8], tool: &str) -> Result<Bytes, Failure> {
    let tool = find(list, tool)?;
    let mut text = format!("# {}\n", tool.title.as_deref().unwrap_or(&tool.name));
    if tool.title.is_some() {
        text.push_str(&format!("\nName: `{}`\n", tool.name));
    }
    if let Some(description) = tool.description.as_deref().map(str::trim).filter(|d| !d.is_empty())
    {
        text.push_str(&format!("\n{description}\n"));
    }
    let fence =
        |heading: &str, schema: &RawValue| format!("\n## {heading}\n\n```json\n{schema}\n```\n");
    if let Some(schema) = tool.input_schema {
        text.push_str(&fence("Arguments", schema));
    }
    if let Some(schema) = tool.output_schema {
        text.push_str(&fence("Result", schema));
    }
    Ok(Bytes::from(text))
}

/// True if the result of a tool reports a failure (R-O12).
pub(crate) fn is_error(result: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Told {
        #[serde(default, rename = "isError")]
        is_error: Option<bool>,
    }
    let told = || serde_json::from_slice::<Told>(result).ok();
    result.starts_with(b"{") && told().is_some_and(|told| told.is_error == Some(true))
}

fn find<'a>(list: &'a [u8], tool: &str) -> Result<Tool<'a>, Failure> {
    let list = parsed(list).map_err(|error| no_list(Kind::Tools, &error))?;
    for item in list.tools {
        let named: Result<Named<'_>, _> = serde_json::from_str(item.get());
        if named.is_ok_and(|named| named.name == tool) {
            return serde_json::from_str(item.get()).map_err(|error| no_list(Kind::Tools, &error));
        }
    }
    Err(Failure::not_found(format!("the server has no tool `{tool}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_servers_order_and_unescaped() {
        let list = br#"{"tools":[{"name":"b"},{"name":"a\u00e4"},{"description":"no name"}]}"#;
        assert_eq!(names(Kind::Tools, list).ok(), Some(vec!["b".to_owned(), "aä".to_owned()]));
        let list = br#"{"resources":[{"name":"x","uri":"file:///x"}],"nextCursor":"1"}"#;
        assert_eq!(names(Kind::Resources, list).ok(), Some(vec!["file:///x".to_owned()]));
        assert_eq!(names(Kind::Prompts, list).ok(), Some(Vec::new()));
        assert_eq!(names(Kind::Tools, b"[]").expect_err("no list").code, Code::Driver);
    }
}
