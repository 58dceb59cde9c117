//! The inputs of a run: the parameters and the scope, for a trial or for a start.

use narthex_console::parts::form::{Field, Input};
use narthex_control::{FieldCode, FieldError, TrialInputs};
use serde_json::{Map, Value};

use super::{
    faults::Faults,
    fields::{choice, params_of},
    values::{Kind, object, scope_keys},
};
use crate::console::sent::Sent;

/// Most keys of the scope that have a field each.
const KEYS: usize = 40;

/// The fields for the inputs of an agent's runs. `merged` has the keys of the scope that lower
/// levels name.
pub(super) fn fields(
    definition: &Map<String, Value>,
    merged: Option<&Value>,
    sent: Option<&Sent>,
    faults: &mut Faults,
) -> Vec<Field> {
    let text = |name: &str| sent.and_then(|sent| sent.get(name)).unwrap_or_default();
    let mut all = Vec::new();
    for (name, schema) in params(definition) {
        let field = format!("param.{name}");
        let input = match schema["enum"].as_array() {
            Some(allowed) => {
                let kind = Kind::of(&schema);
                let mut options = vec![(String::new(), "no value".to_owned())];
                let allowed = allowed.iter().map(|value| kind.text(value));
                options.extend(allowed.map(|value| (value.clone(), value)));
                choice(options, &text(&field))
            }
            None => Input::line(&text(&field)),
        };
        let help = schema["description"].as_str().map(str::to_owned);
        let is_needed = schema["required"] == true;
        let help = match (help, is_needed) {
            (Some(help), true) => format!("{help}; a run needs it"),
            (Some(help), false) => help,
            (None, true) => "A run needs it.".to_owned(),
            (None, false) => "The model sees it.".to_owned(),
        };
        let fault = faults.take(&format!("run.params.{name}"));
        let made = Field::new(field, &format!("Parameter {name}"), input).help(&help);
        all.push(made.fault(fault.as_deref()));
    }
    let more = Input::area(&text("params_more"), 2);
    let made = Field::new("params_more", "Further parameters", more).help("An object of JSON.");
    all.push(made.fault(faults.take("run.params").as_deref()));
    for name in scope(definition, merged) {
        let field = format!("scope.{name}");
        let input = Input::line(&text(&field));
        let fault = faults.take(&format!("run.scope.{name}"));
        let made = Field::new(field, &format!("Scope {name}"), input);
        all.push(made.help("No model sees it.").fault(fault.as_deref()));
    }
    let more = Input::area(&text("scope_more"), 2);
    let made = Field::new("scope_more", "Further scope", more).help("An object of JSON.");
    all.push(made.fault(faults.take("run.scope").as_deref()));
    let prompt = Field::new("prompt", "Prompt", Input::area(&text("prompt"), 3));
    all.push(prompt.help("For the model of a run that is started.").fault(None));
    all
}

/// The inputs in a form, and the faults of texts that are no values.
pub(super) fn read(definition: &Map<String, Value>, sent: &Sent) -> (TrialInputs, Vec<FieldError>) {
    let (mut inputs, mut faults) = (TrialInputs::default(), Vec::new());
    let fault = |field: &str, why: &str| {
        let remedy = "mend the text, or leave it empty";
        FieldError::new(field, FieldCode::Own("form"), why, remedy)
    };
    match object(&sent.text("params_more")) {
        Ok(members) => inputs.params = members,
        Err(why) => faults.push(fault("run.params", why)),
    }
    match object(&sent.text("scope_more")) {
        Ok(members) => inputs.scope = members,
        Err(why) => faults.push(fault("run.scope", why)),
    }
    let schemas = params(definition);
    for (name, text) in sent.under("param.").filter(|(_, text)| !text.is_empty()) {
        let schema = schemas.iter().find(|(known, _)| known == name);
        let kind = schema.map_or(Kind::Text, |(_, schema)| Kind::of(schema));
        match kind.value(text) {
            Ok(value) => drop(inputs.params.insert(name.to_owned(), value)),
            Err(why) => faults.push(fault(&format!("run.params.{name}"), why)),
        }
    }
    for (name, text) in sent.under("scope.").filter(|(_, text)| !text.is_empty()) {
        inputs.scope.insert(name.to_owned(), text.into());
    }
    (inputs, faults)
}

fn params(definition: &Map<String, Value>) -> Vec<(String, Value)> {
    let schema = definition.get("params_schema").and_then(Value::as_object);
    let all = schema.map(params_of).unwrap_or_default();
    all.into_iter().filter(|(name, _)| is_short(name)).collect()
}

/// The keys of the scope that the definition and the levels below it name.
fn scope(definition: &Map<String, Value>, merged: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(attached) = definition.get("mcpServers") {
        scope_keys(attached, &mut found);
    }
    if let Some(merged) = merged {
        scope_keys(&merged["mcpServers"], &mut found);
    }
    found.retain(|name| is_short(name));
    found.sort();
    found.truncate(KEYS);
    found
}

/// True if a field can have this name in its own.
fn is_short(name: &str) -> bool {
    !name.is_empty() && name.len() < 80
}
