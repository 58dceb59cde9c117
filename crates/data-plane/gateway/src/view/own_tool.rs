//! The gateway's tools at the aggregated endpoint, by which clients that support only tools read
//! resources and prompts (E19). A call of such a tool is a request of another method to the server,
//! on the way of all requests. The server's answer becomes the result of the tool.

use std::sync::Arc;

use bytes::Bytes;
use narthex_model::{Alias, CallError, CallErrorKind};
use narthex_policy::{Item, Request};
use narthex_upstream::{Inventory, InventoryEntry, ServerCapabilities};
use narthex_wire::{Limits, Message, MessageKind, Raw, json::encode_string, method, rpc};
use serde_json::json;

/// The kind of a tool of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnTool {
    /// Lists the resources of a server, and templates of their URIs.
    ListResources,
    /// Reads a resource.
    ReadResource,
    /// Lists the prompts of a server.
    ListPrompts,
    /// Gets a prompt with its arguments filled in.
    GetPrompt,
}

/// An open call of a tool of the gateway.
#[derive(Debug)]
pub(crate) struct OwnCall {
    /// The called tool.
    pub tool: OwnTool,
    /// The part of the server's inventory that callers may see.
    pub inventory: Arc<Inventory>,
}

impl OwnTool {
    /// All own tools.
    pub(crate) const ALL: [Self; 4] =
        narthex_model::every![ListResources, ReadResource, ListPrompts, GetPrompt];

    /// The tool's name, before it is qualified.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    /// The method of the request to the server.
    #[must_use]
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::ListResources => method::RESOURCES_LIST,
            Self::ReadResource => method::RESOURCES_READ,
            Self::ListPrompts => method::PROMPTS_LIST,
            Self::GetPrompt => method::PROMPTS_GET,
        }
    }

    /// True if a server has the primitive that the tool is for (E71).
    #[must_use]
    pub(crate) fn is_for(self, has: &ServerCapabilities) -> bool {
        match self {
            Self::ListResources | Self::ReadResource => has.resources,
            Self::ListPrompts | Self::GetPrompt => has.prompts,
        }
    }

    /// The tool as a list shows it (E82).
    #[must_use]
    pub(crate) fn definition(self, qualified: &str, alias: &Alias) -> Bytes {
        let text = |description: &str| json!({"type": "string", "description": description});
        let cursor = || json!({"cursor": text("The nextCursor of the page before, for the next")});
        let (description, properties, required) = match self {
            Self::ListResources => (
                format!("Lists the resources of the server {alias}, and templates of their URIs"),
                cursor(),
                json!([]),
            ),
            Self::ReadResource => (
                format!("Reads a resource of the server {alias}"),
                json!({"uri": text("Its URI, as list_resources shows it")}),
                json!(["uri"]),
            ),
            Self::ListPrompts => {
                (format!("Lists the prompts of the server {alias}"), cursor(), json!([]))
            }
            Self::GetPrompt => (
                format!("Gets a prompt of the server {alias} with its arguments filled in"),
                json!({
                    "name": text("Its name, as list_prompts shows it"),
                    "arguments": {"type": "object", "description": "Its arguments, by name"},
                }),
                json!(["name"]),
            ),
        };
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let tool = json!({
            "name": qualified,
            "description": description,
            "inputSchema": schema,
            "annotations": {"readOnlyHint": true},
        });
        tool.to_string().into()
    }

    /// The request to the server that a call becomes.
    ///
    /// # Errors
    /// When an argument is missing, or cannot be used.
    pub(crate) fn request(self, alias: &Alias, call: &Message) -> Result<Request, CallError> {
        let mut params = Vec::new();
        let item = self.arguments(call.get("arguments"), &mut params)?;
        // A repeated call has the answers that the server asked for.
        for name in ["inputResponses", "requestState", "_meta"] {
            if let Some(value) = call.get(name) {
                push(&mut params, name, value.as_bytes());
            }
        }
        let params = [b"{", &params[..], b"}"].concat();
        let id = call.id().unwrap_or(Raw::new(b"null"));
        let message = rpc::request(id, self.method(), Some(&params)).into_bytes();
        let limits = Limits { message_bytes: message.len() };
        let message = Message::parse(message, &limits)
            .map_err(|error| invalid(format!("the arguments: {error}")))?;
        Ok(Request::new(alias.clone(), message, item))
    }

    fn arguments(self, given: Option<Raw<'_>>, params: &mut Vec<u8>) -> Result<Item, CallError> {
        let get = |name: &str| given.and_then(|given| given.get(name));
        let text = |name: &str| get(name).and_then(|raw| Some((raw, raw.as_str()?)));
        Ok(match self {
            Self::ListResources | Self::ListPrompts => {
                if let Some((raw, _)) = text("cursor") {
                    push(params, "cursor", raw.as_bytes());
                }
                Item::Server
            }
            Self::ReadResource => {
                let (raw, uri) = text("uri").ok_or_else(|| missing("uri", "list_resources"))?;
                push(params, "uri", raw.as_bytes());
                Item::Resource(uri.as_ref().into())
            }
            Self::GetPrompt => {
                let (raw, name) = text("name").ok_or_else(|| missing("name", "list_prompts"))?;
                push(params, "name", raw.as_bytes());
                if let Some(arguments) = get("arguments").filter(|given| given.is_object()) {
                    push(params, "arguments", arguments.as_bytes());
                }
                Item::Prompt(name.as_ref().into())
            }
        })
    }

    /// The same answer for an absent item and for an item that callers may not see (D5).
    #[must_use]
    pub(crate) fn absent(self, name: &str) -> CallError {
        let shown: String = name.chars().take(200).collect();
        let what = match self {
            Self::ListResources | Self::ReadResource => "resource",
            Self::ListPrompts | Self::GetPrompt => "prompt",
        };
        invalid(format!("there is no {what} `{shown}`"))
    }
}

impl OwnCall {
    /// Converts the server's answer to the answer to the call of a tool.
    ///
    /// # Errors
    /// When the server's answer is an error, or cannot be shown.
    pub(crate) fn answered(&self, item: &Item, answer: &Message) -> Result<Message, CallError> {
        if answer.kind() == MessageKind::Error {
            return Err(self.failed(item, answer));
        }
        let kind = answer.get("resultType").and_then(Raw::as_str);
        if kind.is_some_and(|kind| kind != "complete") {
            return Ok(answer.clone());
        }
        let mut blocks = Vec::new();
        match self.tool {
            OwnTool::ListResources => {
                blocks.push(text_block(&list(answer, "resources", &self.inventory.templates)));
            }
            OwnTool::ListPrompts => blocks.push(text_block(&list(answer, "prompts", &[]))),
            OwnTool::ReadResource => resource_blocks(answer, &mut blocks),
            OwnTool::GetPrompt => prompt_blocks(answer, &mut blocks),
        }
        let mut result = Vec::new();
        push(&mut result, "content", &[b"[", &blocks.join(&b","[..])[..], b"]"].concat());
        for name in ["resultType", "_meta"] {
            if let Some(value) = answer.get(name) {
                push(&mut result, name, value.as_bytes());
            }
        }
        let result = Bytes::from([b"{", &result[..], b"}"].concat());
        let whole = rpc::result_response(answer.id().unwrap_or(Raw::new(b"0")), &result);
        let whole = whole.into_bytes();
        let limits = Limits { message_bytes: whole.len() };
        Message::parse(whole, &limits).map_err(|error| {
            let text = format!("the server's answer cannot be used here: {error}");
            CallError::new(CallErrorKind::ServerError, text)
        })
    }

    fn failed(&self, item: &Item, answer: &Message) -> CallError {
        let code = answer.error_code();
        let is_absent = match self.tool {
            OwnTool::ReadResource => matches!(
                code,
                Some(rpc::code::LEGACY_RESOURCE_NOT_FOUND | rpc::code::INVALID_PARAMS)
            ),
            OwnTool::ListResources | OwnTool::ListPrompts | OwnTool::GetPrompt => false,
        };
        if is_absent {
            return self.tool.absent(item.name());
        }
        let text = answer.get("message").and_then(Raw::as_str).unwrap_or_default();
        let details = Some(json!({ "code": code }));
        let kind = CallErrorKind::ServerError;
        CallError { kind, message: text.into_owned(), details }
    }
}

/// Writes a page of a list as JSON, its cursor first: a text may be cut at its end.
fn list(answer: &Message, member: &str, templates: &[InventoryEntry]) -> Vec<u8> {
    let mut page = Vec::new();
    if let Some(cursor) = answer.get("nextCursor").filter(|cursor| cursor.as_str().is_some()) {
        push(&mut page, "nextCursor", cursor.as_bytes());
    }
    push(&mut page, member, answer.get(member).map_or(&b"[]"[..], Raw::as_bytes));
    if !templates.is_empty() {
        let templates: Vec<_> = templates.iter().map(|entry| entry.raw.clone()).collect();
        let templates = [b"[", &templates.join(&b","[..])[..], b"]"].concat();
        push(&mut page, "resourceTemplates", &templates);
    }
    [b"{", &page[..], b"}"].concat()
}

/// Text becomes text blocks; binary content stays an embedded resource.
fn resource_blocks(answer: &Message, blocks: &mut Vec<Vec<u8>>) {
    for content in answer.get("contents").map(Raw::items).unwrap_or_default() {
        match content.get("text").filter(|text| text.as_str().is_some()) {
            Some(text) => blocks.push(raw_text_block(text.as_bytes())),
            None => blocks
                .push([br#"{"type":"resource","resource":"#, content.as_bytes(), b"}"].concat()),
        }
    }
}

/// Each message with its role; content other than text stays unchanged.
fn prompt_blocks(answer: &Message, blocks: &mut Vec<Vec<u8>>) {
    if let Some(text) = answer.get("description").and_then(Raw::as_str) {
        blocks.push(text_block(text.as_bytes()));
    }
    for message in answer.get("messages").map(Raw::items).unwrap_or_default() {
        let role = message.get("role").and_then(Raw::as_str).unwrap_or_default();
        let Some(content) = message.get("content") else { continue };
        match content.get("text").and_then(Raw::as_str) {
            Some(text) => blocks.push(text_block(format!("{role}: {text}").as_bytes())),
            None => {
                blocks.push(text_block(format!("{role}:").as_bytes()));
                blocks.push(content.as_bytes().to_vec());
            }
        }
    }
}

fn text_block(text: &[u8]) -> Vec<u8> {
    raw_text_block(&encode_string(&String::from_utf8_lossy(text)))
}

fn raw_text_block(quoted: &[u8]) -> Vec<u8> {
    [br#"{"type":"text","text":"#, quoted, b"}"].concat()
}

/// Adds a member to the inside of an object.
fn push(object: &mut Vec<u8>, name: &str, value: &[u8]) {
    if !object.is_empty() {
        object.push(b',');
    }
    object.extend_from_slice(&encode_string(name));
    object.push(b':');
    object.extend_from_slice(value);
}

fn missing(name: &str, list: &str) -> CallError {
    invalid(format!("`{name}` must be a string, as {list} shows it"))
}

fn invalid(message: String) -> CallError {
    CallError::new(CallErrorKind::InvalidArguments, message)
}
