//! The tools of the built-in server, which every run has (X-M1, X-M2). Each tool is a registration
//! of its arguments, its effect and its required scopes, with a handler function.
//!
//! The caller is always the run, never an argument. The gateway decides permission outside of this
//! crate: it asks policy for these tools as for any other (D13).

mod called;
mod faults;
#[cfg(test)]
mod model_texts;
mod registration;
mod tools;
mod waiting;

use std::{collections::HashMap, fmt};

use bytes::Bytes;
use narthex_control::Control;
use narthex_gateway::{
    BuiltInAnswer, BuiltInCall, BuiltInResult, BuiltInServer, BuiltInTool, Lacking, RunView,
};
use narthex_model::{BuiltInTools, CallError, CallErrorKind, ToolScopes};
use narthex_outbound::Outbound;
use narthex_runs::Runs;
use narthex_wire::Raw;
use serde_json::{Map, Value};

pub(crate) use self::called::{Called, failed, invalid, of_sharing, said};
pub use self::registration::{Effect, RegistrationError, Tool};
use self::waiting::Waiting;

/// The maximum size of the arguments, in bytes.
const ARGUMENTS_MAX: usize = 1024 * 1024;

/// The parts of the platform that tools use. The store of `control` has the events of sessions.
#[derive(Debug, Clone)]
pub struct Platform {
    /// The catalog, grants and principals.
    pub control: Control,
    /// Runs and sessions.
    pub runs: Runs,
    /// The channels to which agents post, if there are any.
    pub outbound: Option<Outbound>,
}

/// The registered tools.
pub struct Tools {
    platform: Platform,
    registered: Registrations,
    waiting: Waiting,
}

/// Checked registrations, each with a different name.
pub(crate) struct Registrations {
    /// The tools in the order of their registration.
    all: Vec<Registered>,
    by_name: HashMap<&'static str, usize>,
}

/// A registration, with parts that are computed once.
struct Registered {
    tool: Tool,
    definition: Bytes,
    validator: jsonschema::Validator,
    scopes: ToolScopes,
}

impl Registrations {
    /// Checks each tool.
    ///
    /// # Errors
    /// When a registration contradicts itself or its name is taken. The error names the tool and
    /// the reason.
    pub(crate) fn new(tools: Vec<Tool>) -> Result<Self, RegistrationError> {
        let mut all = Vec::with_capacity(tools.len());
        let mut by_name = HashMap::new();
        for tool in tools {
            let (validator, scopes) = (tool.check()?, tool.scopes()?);
            if by_name.insert(tool.name, all.len()).is_some() {
                return Err(RegistrationError::new(&tool, "another tool has this name"));
            }
            let definition = Bytes::from(tool.definition().to_string());
            all.push(Registered { tool, definition, validator, scopes });
        }
        Ok(Self { all, by_name })
    }

    fn find(&self, name: &str) -> Option<&Registered> {
        self.by_name.get(name).map(|index| &self.all[*index])
    }
}

impl Tools {
    /// Registers the tools of the platform.
    ///
    /// # Errors
    /// When a registration contradicts itself. The error names the tool and the reason (I-M12,
    /// I-M13).
    pub fn new(platform: Platform) -> Result<Self, RegistrationError> {
        let registered = Registrations::new(tools::all())?;
        Ok(Self { platform, registered, waiting: Waiting::default() })
    }

    /// The registrations, in their order.
    pub fn registrations(&self) -> impl Iterator<Item = &Tool> {
        self.registered.all.iter().map(|one| &one.tool)
    }

    /// Finds a tool and checks the arguments of its call. Returns the tool, and the arguments as
    /// text and as a value.
    fn checked(
        &self,
        name: &str,
        arguments: Option<Raw<'_>>,
    ) -> Result<(&Tool, Vec<u8>, Value), CallError> {
        let Some(Registered { tool, validator, .. }) = self.registered.find(name) else {
            let text = format!("there is no tool `{name}`");
            return Err(CallError::new(CallErrorKind::ToolNotFound, text));
        };
        let (text, value) = read(arguments)?;
        let faults = faults::faults(&tool.schema, validator, &value);
        match faults.is_empty() {
            true => Ok((tool, text, value)),
            false => Err(invalid(faults)),
        }
    }

    async fn answer(&self, call: BuiltInCall<'_>) -> Result<BuiltInResult, CallError> {
        let name = call.name;
        let (tool, text, value) = self.checked(name, call.arguments)?;
        let called = Called::new((&self.platform, &self.waiting), &call, text, value);
        let result = (tool.handler)(called).await?;
        match result.structured.to_string().len() > tool.result_max {
            true => {
                let text = format!("the result of `{name}` is longer than {}", tool.result_max);
                Err(CallError::new(CallErrorKind::LimitExceeded, text))
            }
            false => Ok(result),
        }
    }
}

/// The arguments as text and as a value. Missing arguments count as an empty object.
fn read(arguments: Option<Raw<'_>>) -> Result<(Vec<u8>, Value), CallError> {
    let Some(raw) = arguments.filter(|raw| raw.as_bytes() != b"null") else {
        return Ok((b"{}".to_vec(), Value::Object(Map::new())));
    };
    let bytes = raw.as_bytes();
    if bytes.len() > ARGUMENTS_MAX {
        let text = format!("the arguments are longer than {ARGUMENTS_MAX} bytes");
        return Err(CallError::new(CallErrorKind::LimitExceeded, text));
    }
    let value = serde_json::from_slice(bytes).map_err(|error| {
        CallError::new(CallErrorKind::InvalidArguments, format!("`arguments`: {error}"))
    })?;
    Ok((bytes.to_vec(), value))
}

impl BuiltInServer for Tools {
    fn definitions(&self) -> Vec<BuiltInTool<'_>> {
        let listed = |one: &Registered| BuiltInTool {
            name: one.tool.name,
            definition: one.definition.clone(),
            scopes: one.scopes.clone(),
            is_for_asking: one.tool.name == tools::ASKING,
        };
        self.registered.all.iter().map(listed).collect()
    }

    fn ask(&self, run: &RunView, lacking: &Lacking<'_>) -> Option<Value> {
        tools::ask(&self.platform.control, run, lacking)
    }

    fn shown(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<Vec<u8>> {
        let spelling = self.registered.find(name)?.tool.spelling?;
        let sent = arguments?.as_bytes();
        // Arguments that are too long or not an object are refused in any case, whatever the rules
        // say.
        let value = Some(sent).filter(|sent| sent.len() <= ARGUMENTS_MAX);
        let mut value: Map<String, Value> = serde_json::from_slice(value?).ok()?;
        let before = value.clone();
        spelling(&mut value);
        (value != before).then(|| Value::Object(value).to_string().into_bytes())
    }

    fn instructions(&self, has: &BuiltInTools) -> String {
        tools::instructions(has)
    }

    fn meant(&self, name: &str, arguments: Option<Raw<'_>>) -> Option<(&'static str, Vec<u8>)> {
        tools::meant(name, arguments.map_or(b"{}", Raw::as_bytes))
    }

    fn check(&self, name: &str, arguments: Option<Raw<'_>>) -> Result<(), CallError> {
        self.checked(name, arguments).map(|_| ())
    }

    fn call<'a>(&'a self, call: BuiltInCall<'a>) -> BuiltInAnswer<'a> {
        Box::pin(self.answer(call))
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.registered.all.iter().map(|one| one.tool.name).collect();
        f.debug_tuple("Tools").field(&names).finish()
    }
}
