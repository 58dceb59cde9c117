//! The fields of an attachment, each with the level of its value and the values it overrides.

use narthex_console::parts::form::{Field, Input};
use serde_json::{Map, Value};

use super::{
    draft::{field_of, has_field, place_of},
    effective::{chain, key},
    faults::Faults,
    fields::{OPTIONS, Sketch, choice},
    values::{KEPT, Kind, is_placeholder, is_secret, reference, shown},
};

impl Sketch<'_> {
    /// The fields of an attachment: its keys, those without a schema, and what happens without it.
    pub(super) fn of_attachment(
        &self,
        alias: &str,
        one: &Value,
        faults: &mut Faults,
    ) -> Vec<Field> {
        if self.off.is_some() {
            // Values are for authors (D39).
            return Vec::new();
        }
        let id = one["ref"].as_str().unwrap_or_default();
        let (config, mut all) = (&one["config"], Vec::new());
        let keys = self.around.keys(id).filter(|(name, _)| has_field(alias, name));
        for (name, schema) in keys {
            let own = config.get(name);
            let place = place_of(alias, name);
            all.push(self.field(self.key(alias, name, schema, own), &place, faults));
            all.extend(self.removing(alias, name, own));
        }
        all.extend(self.others(alias, id, config, faults));
        let optional = match &one["optional"] {
            Value::Bool(true) => "yes",
            Value::Bool(false) => "no",
            _ => "",
        };
        let name = format!("opt.{alias}");
        let chosen = self.kept(&name, || optional.to_owned());
        let options = [
            ("", "as the other levels say"),
            ("yes", "optional: runs do without it"),
            ("no", "needed: runs are refused without it"),
        ];
        let options = options.map(|(value, label)| (value.to_owned(), label.to_owned())).to_vec();
        let field = Field::new(name, "If it does not start", choice(options, &chosen));
        // Faults of the attachment as a whole, such as its reference, are shown here.
        all.push(self.field(field, &place_of_alias(alias), faults));
        all
    }

    /// The field of a key with a schema.
    fn key(&self, alias: &str, name: &str, schema: &Value, own: Option<&Value>) -> Field {
        let field = field_of(alias, name);
        let merged = self.merged.and_then(|merged| key(merged, alias, name));
        let inherited = match own {
            None => merged.map(|merged| shown(&merged["value"])).unwrap_or_default(),
            Some(_) => String::new(),
        };
        let kind = Kind::of(schema);
        let unset = match inherited.is_empty() {
            true => "not set here".to_owned(),
            false => format!("not set here: {inherited}"),
        };
        let text = || own.map(|value| kind.text(value)).unwrap_or_default();
        let input = match (schema["enum"].as_array(), kind) {
            _ if is_secret(name, schema) => self.secret(&field, own, unset),
            (Some(allowed), _) => {
                let allowed = allowed.iter().map(|value| kind.text(value));
                self.one_of(&field, unset, allowed.collect(), text())
            }
            (None, Kind::Flag) => {
                let both = vec!["true".to_owned(), "false".to_owned()];
                self.one_of(&field, unset, both, text())
            }
            (None, Kind::Json) => Input::area(&self.kept(&field, text), 3),
            // An input of one line would lose its line breaks.
            (None, Kind::Text) if text().contains('\n') => Input::area(&self.kept(&field, text), 3),
            (None, Kind::Text | Kind::Number) => {
                Input::Line { value: self.kept(&field, text), example: inherited }
            }
        };
        let label = match schema["label"].as_str() {
            Some(label) => format!("{label} ({name})"),
            None => name.to_owned(),
        };
        let made = Field::new(field, &label, input).help(&help(name, schema, kind));
        made.origins(merged.map(chain).unwrap_or_default())
    }

    fn one_of(&self, field: &str, unset: String, values: Vec<String>, own: String) -> Input {
        let chosen = self.kept(field, || own.clone());
        let mut options = vec![(String::new(), unset)];
        options.extend(values.into_iter().map(|value| (value.clone(), value)));
        if !options.iter().any(|(value, _)| *value == chosen) {
            options.push((chosen.clone(), chosen.clone()));
        }
        choice(options, &chosen)
    }

    /// A choice of references (X-M52): no value is ever shown, and none can be written.
    fn secret(&self, field: &str, own: Option<&Value>, unset: String) -> Input {
        let before = match own {
            None | Some(Value::Null) => String::new(),
            Some(value) => reference(value).unwrap_or_else(|| KEPT.to_owned()),
        };
        let sent = self.sent.and_then(|sent| sent.get(field));
        // A value that was written here anyway is not shown again.
        let sent = sent.filter(|sent| sent.is_empty() || sent == KEPT || is_placeholder(sent));
        let chosen = sent.unwrap_or_else(|| before.clone());
        if self.around.secrets.len() > OPTIONS && before != KEPT {
            return Input::Line { value: chosen, example: "${NAME}".to_owned() };
        }
        let mut options = vec![(String::new(), unset)];
        if before == KEPT {
            options.push((KEPT.to_owned(), "the stored value, which is not shown".to_owned()));
        }
        let secrets = self.around.secrets.iter().take(OPTIONS).map(|(name, is_set)| {
            let text = format!("${{{name}}}");
            let label = if *is_set { text.clone() } else { format!("{text}, which is not set") };
            (text, label)
        });
        options.extend(secrets);
        if !options.iter().any(|(value, _)| *value == chosen) {
            options.push((chosen.clone(), chosen.clone()));
        }
        choice(options, &chosen)
    }

    /// The box that removes a key which a lower level sets.
    fn removing(&self, alias: &str, name: &str, own: Option<&Value>) -> Option<Field> {
        let merged = self.merged.and_then(|merged| key(merged, alias, name));
        let has_below = merged.is_some_and(|merged| {
            own.is_none() || merged["overrides"].as_array().is_some_and(|all| !all.is_empty())
        });
        let is_removed = own == Some(&Value::Null);
        let field = format!("no.{alias}.{name}");
        let is_on = match self.sent {
            Some(sent) => sent.is_on(&field),
            None => is_removed,
        };
        let label = format!("Remove {name}");
        let made = || {
            Field::new(field, &label, Input::Check { is_on })
                .help("The server then gets no value, whatever lower levels say.")
        };
        (has_below || is_removed || is_on).then(made)
    }

    /// The values of keys without a schema.
    fn others(&self, alias: &str, id: &str, config: &Value, faults: &mut Faults) -> Option<Field> {
        let server = self.around.servers.get(id);
        let declared = server.and_then(|server| server.schema.as_ref());
        let is_other = |name: &str| {
            declared.is_none_or(|declared| !declared.contains_key(name)) || !has_field(alias, name)
        };
        let others = config.as_object().into_iter().flatten();
        let others: Map<_, _> = others
            .filter(|(name, _)| is_other(name))
            .map(|(name, value)| (name.clone(), without_secrets(name, value)))
            .collect();
        if others.is_empty() && declared.is_some() {
            return None;
        }
        let text = || match others.is_empty() {
            true => String::new(),
            false => Kind::Json.text(&Value::Object(others.clone())),
        };
        let field = format!("more.{alias}");
        let value = self.kept(&field, text);
        let made = Field::new(field, "Other values", Input::area(&value, 3)).help(
            "An object of JSON with keys that have no field. A secret is named as ${NAME}; a \
             stored value that is not shown is (kept).",
        );
        // Faults of single keys inside of it are shown here as well.
        let config = format!("{}.config", place_of_alias(alias));
        Some(self.field(made, &config, faults))
    }
}

/// A value of a key without a schema; a literal that may be a secret is not shown.
fn without_secrets(name: &str, value: &Value) -> Value {
    let is_literal = reference(value).is_none() && !value.is_null();
    match is_literal && is_secret(name, &Value::Null) {
        true => KEPT.into(),
        false => value.clone(),
    }
}

fn place_of_alias(alias: &str) -> String {
    narthex_model::json::Place::root("mcpServers").key(alias).to_string()
}

/// The sentence about a key.
fn help(name: &str, schema: &Value, kind: Kind) -> String {
    let mut all = Vec::new();
    all.extend(schema["description"].as_str().map(|text| text.trim_end_matches('.').to_owned()));
    if schema["required"] == true {
        all.push("a run needs it".to_owned());
    }
    match kind {
        _ if is_secret(name, schema) => all.push("a reference to a secret".to_owned()),
        Kind::Text => {}
        Kind::Number => all.push("a number".to_owned()),
        Kind::Flag => all.push("true or false".to_owned()),
        Kind::Json => all.push("JSON".to_owned()),
    }
    if schema["internal"] == true {
        all.push("only a placeholder of runtime or runner, such as ${runtime.run_id}".to_owned());
    }
    all.extend(schema["pattern"].as_str().map(|pattern| format!("it matches {pattern}")));
    let example = Some(&schema["example"]).filter(|example| !example.is_null());
    let example = example.filter(|_| !is_secret(name, schema));
    all.extend(example.map(|example| format!("for example {}", shown(example))));
    all.join("; ")
}
