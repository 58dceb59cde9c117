//! Registrations of tools.

use std::{fmt, pin::Pin};

use jsonschema::Validator;
use narthex_gateway::BuiltInResult;
use narthex_model::{CallError, ToolScope, ToolScopes};
use serde_json::{Map, Value, json};

use crate::Called;

/// The effect of a tool. Its annotations follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The tool only reads.
    Reads,
    /// The tool adds data at each call.
    Adds,
    /// The tool changes data; a second equal call has no further effect.
    Settles,
    /// The tool ends or overwrites data; a second equal call has no further effect.
    Destroys,
}

/// The answer of a tool.
pub(crate) type Answer<'a> =
    Pin<Box<dyn Future<Output = Result<BuiltInResult, CallError>> + Send + 'a>>;
/// The function that a tool runs.
pub(crate) type Handler = for<'a> fn(Called<'a>) -> Answer<'a>;

/// A tool as it is registered.
pub struct Tool {
    /// The tool's name.
    pub name: &'static str,
    /// The title for people.
    pub title: &'static str,
    /// The description for a model.
    pub description: &'static str,
    /// The JSON Schema of the arguments.
    pub schema: Value,
    /// The tool's effect.
    pub effect: Effect,
    /// True if the tool reaches systems outside of the platform.
    pub is_open_world: bool,
    /// The tool scopes that a human must have granted to the caller (X-M6).
    pub required_scopes: &'static [&'static str],
    /// The maximum size of a result, in bytes.
    pub result_max: usize,
    /// Rewrites arguments that have several spellings into the one that rules use.
    pub(crate) spelling: Option<fn(&mut Map<String, Value>)>,
    pub(crate) handler: Handler,
}

/// The reason why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the tool `{tool}` cannot be registered: {why}")]
pub struct RegistrationError {
    tool: &'static str,
    why: String,
}

impl RegistrationError {
    pub(crate) fn new(tool: &Tool, why: impl Into<String>) -> Self {
        Self { tool: tool.name, why: why.into() }
    }
}

impl Tool {
    /// Creates a tool with the most common settings: it requires no tool scopes.
    pub(crate) fn new(name: &'static str, effect: Effect, handler: Handler) -> Self {
        Self {
            name,
            title: "",
            description: "",
            schema: Value::Null,
            effect,
            is_open_world: false,
            required_scopes: &[],
            result_max: 1024 * 1024,
            spelling: None,
            handler,
        }
    }

    /// The tool's entry in `tools/list`.
    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.schema,
            "annotations": self.annotations(),
        })
    }

    /// Hints about the effect. Hints that equal MCP's default are left out.
    fn annotations(&self) -> Value {
        let hints = [
            ("readOnlyHint", true, self.effect == Effect::Reads),
            ("destructiveHint", false, self.effect != Effect::Destroys),
            ("idempotentHint", true, self.effect != Effect::Adds),
            ("openWorldHint", false, !self.is_open_world),
        ];
        let told = hints.into_iter().filter(|(_, _, is_told)| *is_told);
        told.map(|(name, value, _)| (name.to_owned(), Value::Bool(value)))
            .collect::<Map<_, _>>()
            .into()
    }

    /// The tool scopes that the tool requires.
    pub(crate) fn scopes(&self) -> Result<ToolScopes, RegistrationError> {
        let scope = |text: &&str| {
            ToolScope::new(text).map_err(|error| RegistrationError::new(self, error.to_string()))
        };
        self.required_scopes.iter().map(scope).collect()
    }

    /// Checks the registration, and returns the validator of the tool's arguments.
    pub(crate) fn check(&self) -> Result<Validator, RegistrationError> {
        let error = |why: String| RegistrationError::new(self, why);
        if self.title.is_empty() || self.description.is_empty() {
            return Err(error("its title or its description is missing".to_owned()));
        }
        if self.schema["type"] != "object" || self.schema["additionalProperties"] != json!(false) {
            return Err(error("its schema is not that of an object of known members".to_owned()));
        }
        let built = jsonschema::options().offline().build(&self.schema);
        built.map_err(|fault| error(fault.to_string()))
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .field("required_scopes", &self.required_scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Registrations, faults::faults, said, tools};

    fn tool() -> Tool {
        let schema = json!({"type": "object", "properties": {"text": {"type": "string"}},
                            "additionalProperties": false});
        let handler: Handler = |_called| Box::pin(async { Ok(said("", json!({}))) });
        Tool { title: "t", description: "d", schema, ..Tool::new("t", Effect::Adds, handler) }
    }

    /// I-M12, I-M13: registrations with a contradiction are refused as a whole, so the daemon does
    /// not start. The error names the tool and the reason.
    #[test]
    fn i_m13_registrations_at_odds_with_themselves_are_refused() {
        let open = json!({"type": "object", "properties": {}});
        let list = json!({"type": "array", "additionalProperties": false});
        let unknown_type = json!({"type": "object", "additionalProperties": false,
                                  "properties": {"a": {"type": "song"}}});
        let other = || Tool { name: "other", ..tool() };
        for (bad, why) in [
            (Tool { title: "", ..tool() }, "its title or its description is missing"),
            (Tool { description: "", ..tool() }, "its title or its description is missing"),
            (Tool { schema: open, ..tool() }, "an object of known members"),
            (Tool { schema: list, ..tool() }, "an object of known members"),
            (Tool { schema: unknown_type, ..tool() }, "song"),
            (Tool { required_scopes: &["no scope"], ..tool() }, "no scope"),
        ] {
            let error = Registrations::new(vec![other(), bad]).err().unwrap().to_string();
            assert!(error.contains("the tool `t` cannot be registered"), "{error}");
            assert!(error.contains(why), "{why}: {error}");
        }
        let twice = Registrations::new(vec![tool(), other(), tool()]).err().unwrap().to_string();
        assert_eq!(twice, "the tool `t` cannot be registered: another tool has this name");
        assert!(Registrations::new(vec![tool(), other()]).is_ok());
    }

    /// The annotations of a tool follow from its effect.
    #[test]
    fn annotations_follow_from_the_effect() {
        let hints = |effect| {
            let definition = Tool { effect, ..tool() }.definition();
            definition["annotations"].clone()
        };
        let closed = |mut hints: Value| {
            hints["openWorldHint"] = false.into();
            hints
        };
        let read =
            json!({ "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true });
        assert_eq!(hints(Effect::Reads), closed(read));
        assert_eq!(hints(Effect::Adds), closed(json!({ "destructiveHint": false })));
        let settled = json!({ "destructiveHint": false, "idempotentHint": true });
        assert_eq!(hints(Effect::Settles), closed(settled));
        assert_eq!(hints(Effect::Destroys), closed(json!({ "idempotentHint": true })));
    }

    /// X-M2, X-M6: the core tools are registered, require no scope, and accept the documented
    /// arguments.
    #[test]
    fn x_m2_the_core_tools_are_registered() {
        let all = tools::all();
        for name in [
            "emit_status",
            "emit_artifact",
            "request_input",
            "emit_error",
            "share",
            "request_permission",
            "request_grant",
            "end_session",
        ] {
            let tool = all.iter().find(|tool| tool.name == name).unwrap();
            assert!(tool.required_scopes.is_empty(), "{name}");
            tool.check().unwrap();
        }
        let status = all.iter().find(|tool| tool.name == "emit_status").unwrap();
        let validator = status.check().unwrap();
        assert!(faults(&status.schema, &validator, &json!({"status": "done"})).is_empty());
        let wrong = json!({"status": "secret-word", "more": 1});
        let wrong = faults(&status.schema, &validator, &wrong);
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        assert!(!format!("{wrong:?}").contains("secret-word"), "values are not told back");
    }
}
