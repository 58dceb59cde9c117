//! Makes an entry of narthex's files from a way and the answers of its user.

use std::collections::BTreeMap;

use narthex_model::{Secret, SecretName};
use serde_json::{Map, Value, json};

use super::{
    compose::{Composed, Parts, Piece, as_read, literal},
    document::Input,
    inputs::{Answer, Answers, Folders, Question},
    runtime,
    slot::{Place, Slot},
    ways::{Form, Way, WayKind},
    words,
};

/// An entry whose secrets have no names yet.
#[derive(Debug, Clone)]
pub struct Draft {
    kind: WayKind,
    target: Target,
    /// Variables of a program, or headers of requests.
    values: Vec<(String, Composed)>,
    /// Options that open a part of this machine to a container, with their values.
    opened: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
enum Target {
    Program {
        command: String,
        args: Vec<String>,
        /// The working folder, if it matters.
        cwd: Option<String>,
    },
    Remote {
        url: String,
    },
}

impl Way {
    /// The entry with these answers.
    ///
    /// # Errors
    /// All faults of the answers: missing and unknown ones, and those that break a rule.
    pub fn draft(&self, answers: &Answers, folders: &Folders) -> Result<Draft, Vec<String>> {
        let mut faults = self.faults(answers, folders);
        let mut parts = Parts::default();
        for slot in &self.slots {
            match slot.composed(answers, folders) {
                Ok(values) => parts.add(slot, values, folders, &mut faults),
                Err(fault) => faults.push(fault),
            }
        }
        if let Form::Unpacked(server) = &self.form {
            server.compose(answers, folders, &mut parts, &mut faults);
            // Variables of packages are checked by the code that makes the way.
            faults.extend(parts.values.iter().filter_map(|(name, _)| {
                words::variable(name).err().map(|rule| format!("the variable `{name}` {rule}"))
            }));
        }
        if !faults.is_empty() {
            faults.dedup();
            return Err(faults);
        }
        let Parts { first, own, rest, values, opened, url } = parts;
        let target = match &self.form {
            Form::Program { command, first: fixed, package } => {
                let mut args: Vec<String> = fixed.iter().map(|word| literal(word)).collect();
                if self.kind == WayKind::Oci {
                    // The runtime takes the values from its own environment.
                    let names = values.iter().flat_map(|(name, _)| ["-e", name.as_str()]);
                    args.extend(names.map(str::to_owned));
                }
                args.extend(first);
                args.push(literal(package));
                args.extend(rest);
                Target::Program { command: (*command).to_owned(), args, cwd: None }
            }
            Form::Unpacked(server) => Target::Program {
                command: literal(server.command()),
                args: [first, own, rest].concat(),
                cwd: Some(literal(server.folder())),
            },
            Form::Bundle(_) => return Err(vec!["its bundle is not unpacked".to_owned()]),
            Form::Remote => Target::Remote { url: url.unwrap_or_default() },
        };
        Ok(Draft { kind: self.kind, target, values, opened })
    }

    /// The faults of answers by themselves.
    fn faults(&self, answers: &Answers, folders: &Folders) -> Vec<String> {
        let questions = self.questions();
        let mut faults = Vec::new();
        for name in answers.names() {
            if !questions.iter().any(|question| question.name == name) {
                let known: Vec<_> = questions.iter().map(|one| one.name.as_str()).collect();
                faults.push(match known.is_empty() {
                    true => format!("the server takes no value `{name}`, and no other either"),
                    false => {
                        format!("the server takes no value `{name}`; it takes {}", known.join(", "))
                    }
                });
            }
        }
        for question in &questions {
            let given = answers.of(&question.name);
            if given.len() > 1 && !question.is_repeated {
                faults.push(format!("{} takes one value; it is given twice", question.place));
            }
            if given.is_empty() && question.is_required && question.default.is_none() {
                faults.push(missing(question));
            }
            for answer in given {
                if let Answer::Text(text) = answer
                    && let Err(rule) = question.checked(text, folders)
                {
                    faults.push(format!("{} {rule}", question.place));
                }
            }
        }
        faults
    }
}

/// The fault of a required value that is not given, with the flag that gives it.
fn missing(question: &Question) -> String {
    let Question { name, place, .. } = question;
    match (question.is_secret, question.can_be_secret) {
        (true, true) => format!("{place} is required; give it with --set-secret {name}"),
        (true, false) => format!(
            "{place} is a secret, but arguments and addresses are visible to other programs; name \
             a variable of the daemon with --set {name}='${{env:NAME}}' if you accept that"
        ),
        (false, _) => format!("{place} is required; give it with --set {name}=VALUE"),
    }
}

impl Parts {
    fn add(
        &mut self,
        slot: &Slot,
        values: Vec<Composed>,
        folders: &Folders,
        faults: &mut Vec<String>,
    ) {
        for value in values {
            let (is_first, name) = match &slot.place {
                Place::Env(name) | Place::Header(name) => {
                    self.values.retain(|(known, _)| known != name);
                    self.values.push((name.clone(), value));
                    continue;
                }
                Place::Flag { name, is_first } => (*is_first, Some(name)),
                Place::Word { is_first, .. } => (*is_first, None),
                Place::Url => (false, None),
            };
            let text = match value.visible(&slot.place.words()) {
                Ok(text) => text,
                Err(fault) => {
                    faults.push(fault);
                    continue;
                }
            };
            if slot.place == Place::Url {
                faults.extend(url_fault(&text));
                self.url = Some(text);
                continue;
            }
            // A flag that is fixed to stand alone opens nothing.
            if let Some(name) = name.filter(|_| is_first && slot.input.value.as_deref() != Some(""))
            {
                if let Err(rule) = runtime::opens(name, &text, folders) {
                    faults.push(format!("{} {rule}", slot.place.words()));
                    continue;
                }
                self.opened.push((name.clone(), text.clone()));
            }
            let words = if is_first { &mut self.first } else { &mut self.rest };
            words.extend(name.map(|name| literal(name)));
            // A flag without a value is a flag alone.
            if !text.is_empty() || name.is_none() {
                words.push(text);
            }
        }
    }
}

fn url_fault(text: &str) -> Option<String> {
    // A reference may stand for any text.
    let read = as_read(text, "_");
    if let Some(start) = read.find('{') {
        let name = read[start..].split_inclusive('}').next().unwrap_or_default();
        return Some(format!("the address has `{name}`, which the description does not explain"));
    }
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    (!is_web).then(|| "the address does not begin with http:// or https://".to_owned())
}

impl Slot {
    /// The values of this place; none if it is not used.
    fn composed(&self, answers: &Answers, folders: &Folders) -> Result<Vec<Composed>, String> {
        let Some(template) = &self.input.value else {
            let values = values(self.name(), &self.input, answers, folders);
            let place = self.place.words();
            return values.iter().map(|one| Composed::of(&place, &[Piece::Value(one)])).collect();
        };
        let variables: Vec<(&str, Vec<Answer>)> = self
            .variables()
            .into_iter()
            .map(|(name, input)| (name, values(name, input, answers, folders)))
            .collect();
        if let Some((name, _)) = variables.iter().find(|(_, values)| values.is_empty()) {
            // A variable has no value, so the place is left out. A required one is a fault already.
            return match self.place {
                Place::Url => {
                    Err(format!("the address needs `{name}`; give it with --set {name}=VALUE"))
                }
                _ => Ok(Vec::new()),
            };
        }
        let count = match self.is_repeated {
            true => variables.iter().map(|(_, values)| values.len()).max().unwrap_or(1),
            false => 1,
        };
        let at = |index: usize| {
            let chosen: BTreeMap<&str, &Answer> = variables
                .iter()
                // A variable with fewer values than another keeps its last one.
                .filter_map(|(name, values)| Some((*name, values.get(index).or(values.last())?)))
                .collect();
            Composed::of(&self.place.words(), &pieces(template, &chosen))
        };
        (0..count).map(at).collect()
    }
}

/// Splits a publisher's text at its variables. A name in braces that is no variable stays.
fn pieces<'a>(template: &'a str, variables: &BTreeMap<&str, &'a Answer>) -> Vec<Piece<'a>> {
    let mut found = Vec::new();
    let (mut rest, mut start) = (template, 0);
    while let Some(open) = rest[start..].find('{').map(|at| at + start) {
        // A brace that is not closed is a text.
        let Some((name, _)) = rest[open + 1..].split_once('}') else { break };
        match variables.get(name) {
            Some(value) => {
                if open > 0 {
                    found.push(Piece::Fixed(&rest[..open]));
                }
                found.push(Piece::Value(value));
                // The name and its braces.
                (rest, start) = (&rest[open + name.len() + 2..], 0);
            }
            None => start = open + 1,
        }
    }
    if !rest.is_empty() || found.is_empty() {
        found.push(Piece::Fixed(rest));
    }
    found
}

/// The values of a question: those given, or else the default.
fn values(name: &str, input: &Input, answers: &Answers, folders: &Folders) -> Vec<Answer> {
    let question = Question::of(name, String::new(), input);
    let whole = |text: &str| question.checked(text, folders).unwrap_or_else(|_| text.to_owned());
    let given = answers.of(name).iter().map(|answer| match answer {
        Answer::Text(text) => Answer::Text(whole(text)),
        other => other.clone(),
    });
    let given: Vec<_> = given.collect();
    match (given.is_empty(), &question.default) {
        (true, Some(default)) => vec![Answer::Text(default.clone())],
        _ => given,
    }
}

impl Draft {
    /// The variables or headers whose values belong into the vault, with these values.
    pub fn secrets(&self) -> impl Iterator<Item = (&str, &Secret)> {
        self.values.iter().filter_map(|(name, value)| match value {
            Composed::Secret(secret) => Some((name.as_str(), secret)),
            Composed::Written(_) => None,
        })
    }

    /// The entry. `names` has the name in the vault of each secret of [`Draft::secrets`].
    #[must_use]
    pub fn entry(&self, names: &BTreeMap<String, SecretName>) -> Value {
        let written = self.values.iter().map(|(name, value)| {
            let text = match value {
                Composed::Written(text) => text.clone(),
                Composed::Secret(_) => {
                    names.get(name).map_or_else(String::new, |name| format!("${{secret:{name}}}"))
                }
            };
            (name.clone(), Value::String(text))
        });
        let written: Map<String, Value> = written.collect();
        let (mut entry, member) = match &self.target {
            Target::Program { command, args, cwd } => {
                let mut entry = json!({ "transport": "stdio", "command": command, "args": args });
                if let Some(cwd) = cwd {
                    entry["cwd"] = json!(cwd);
                }
                (entry, "env")
            }
            Target::Remote { url } => {
                let transport = if self.kind == WayKind::Sse { "sse" } else { "http" };
                (json!({ "transport": transport, "url": url }), "headers")
            }
        };
        if !written.is_empty() {
            entry[member] = Value::Object(written);
        }
        entry
    }

    /// All variables or headers with their values as the entry has them; `None` for a secret.
    pub fn values(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.values.iter().map(|(name, value)| match value {
            Composed::Written(text) => (name.as_str(), Some(text.as_str())),
            Composed::Secret(_) => (name.as_str(), None),
        })
    }

    /// The word for one of [`Draft::values`].
    #[must_use]
    pub fn value_word(&self) -> &'static str {
        match self.target {
            Target::Program { .. } => "variable",
            Target::Remote { .. } => "header",
        }
    }

    /// The options that open a part of this machine to a container, with their values.
    #[must_use]
    pub fn opened(&self) -> &[(String, String)] {
        &self.opened
    }

    /// The command or the address for people, in one line.
    #[must_use]
    pub fn target(&self) -> String {
        match &self.target {
            Target::Program { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(String::as_str);
                let words = words.map(narthex_model::command::quoted);
                words.collect::<Vec<_>>().join(" ")
            }
            Target::Remote { url } => url.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
