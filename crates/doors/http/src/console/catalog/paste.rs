//! Reads a pasted text into the form, and says what was rewritten and what was not taken over (D7).
//! Nothing is stored by it.

use narthex_client_files::catalog::{
    Pasted, PastedFault, PastedServer, Snippet, Taken as Contents, may_hold_secret, snippet,
};
use narthex_console::{
    pages::catalog::form::{Paste, Taken},
    parts::Words,
};
use serde_json::{Map, Value};

use super::{
    draft::{Draft, Shape, ValueRow},
    fields,
    value::written,
};

/// Maximum number of servers among which a person chooses.
const CHOICES: usize = 20;
/// Maximum number of notices that a page shows.
const NOTICES: usize = 100;
/// Maximum number of characters of a notice.
const NOTICE_MAX: usize = 600;
/// The members of a manifest that are members of an entry, too.
const SCOPES: [&str; 3] = ["tool_scopes", "resource_scopes", "prompt_scopes"];

/// Reads a text into the form. `choice` is the number of the wanted server among several. The id of
/// a stored entry stays.
pub(super) fn read(draft: &mut Draft, text: &str, choice: Option<usize>, is_stored: bool) -> Paste {
    let Snippet { client, taken, has_secret } = match snippet(text) {
        Ok(found) => found,
        Err(error) => {
            let is_kept = !may_hold_secret(text);
            let mut paste = fields::paste(if is_kept { text } else { "" }, true);
            let note =
                if is_kept { "" } else { ". The text may have a secret, so it is not shown" };
            paste.text = paste.text.fault(Some(&format!("{error}{note}")));
            return paste;
        }
    };
    let from = match client {
        Some(client) => format!("This is a text of {client}."),
        None => "This is a text of narthex.".to_owned(),
    };
    let mut reading = Reading { draft, is_stored, from, notices: Vec::new() };
    match taken {
        Contents::Servers(pasted) => reading.servers(pasted, text, choice, has_secret),
        Contents::Entry(entry) => {
            reading.entry(entry);
            reading.done()
        }
        Contents::Manifest(manifest) => {
            reading.manifest(&manifest);
            reading.done()
        }
    }
}

/// The form while a text is read into it.
struct Reading<'d> {
    draft: &'d mut Draft,
    is_stored: bool,
    /// The text in words.
    from: String,
    notices: Vec<String>,
}

impl Reading<'_> {
    fn servers(
        mut self,
        pasted: Pasted,
        text: &str,
        choice: Option<usize>,
        has_secret: bool,
    ) -> Paste {
        let Pasted { servers, notices, faults } = pasted;
        self.notices.extend(notices);
        let is_usable = |server: &PastedServer| {
            let place = server.place("");
            !faults.iter().any(|fault| is_within(&fault.place, &place))
        };
        let usable: Vec<_> = servers.iter().filter(|server| is_usable(server)).collect();
        let chosen = match (usable.as_slice(), choice) {
            ([only], _) => Some(*only),
            (several, Some(choice)) => several.get(choice).copied(),
            // The text cannot be shown again for a choice.
            (several, None) if has_secret => several.first().copied(),
            (_, None) => None,
        };
        let others: Vec<_> = usable.iter().filter_map(|server| id_of(server)).collect();
        if let Some(server) = chosen {
            if let Some(id) = id_of(server) {
                self.from.push_str(&format!(" {id} is in the form now."));
            }
            if has_secret && others.len() > 1 {
                let text = " The others were not read: paste them one by one.";
                self.from.push_str(text);
            }
            self.entry(server.value.clone());
            let mut paste = self.done();
            told(&mut paste, &faults);
            return paste;
        }
        let is_kept = !has_secret;
        let mut paste = fields::paste(if is_kept { text } else { "" }, true);
        let mut choices = Vec::new();
        for (index, id) in others.iter().enumerate().take(CHOICES) {
            choices.push((format!("take.{index}"), Words::within(id, 100)));
        }
        match choices.is_empty() {
            true => self.from.push_str(" Nothing of it is in the form: mend these first."),
            false => self.from.push_str(" It has several servers: take one of them."),
        }
        if !is_kept {
            self.from.push_str(" It has values that look like secrets, so it is not shown again.");
        }
        paste.taken = Some(self.taken(choices));
        told(&mut paste, &faults);
        paste
    }

    /// Takes an entry of the catalog into the form.
    fn entry(&mut self, mut entry: Value) {
        if let Some(members) = entry.as_object_mut() {
            let manifest = members.remove("manifest");
            env_as_values(members);
            if let Some(manifest) = manifest {
                self.manifest(&manifest);
            }
        }
        let mut read = Draft::of_definition(&entry);
        for row in read.values.iter_mut().filter(|row| row.is_kept) {
            row.is_kept = false;
            self.notices.push(format!(
                "default_config.{}: the value looks like a secret and was not taken over; write a \
                 reference such as `${{NAME}}`",
                row.key
            ));
        }
        self.merge(read);
    }

    /// Puts the fields of an entry into the form. A field that the entry does not have stays.
    fn merge(&mut self, read: Draft) {
        let draft = &mut *self.draft;
        if self.is_stored {
            if !read.id.is_empty() && read.id != draft.id {
                let text = "id: not taken over, since the id of a stored entry never changes";
                self.notices.push(text.to_owned());
            }
        } else {
            put(&mut draft.id, read.id);
        }
        put(&mut draft.name, read.name);
        put(&mut draft.description, read.description);
        let has_shape = [&read.url, &read.command, &read.image, &read.script];
        if has_shape.iter().any(|text| !text.is_empty()) {
            (draft.shape, draft.is_sse) = (read.shape, read.is_sse);
            (draft.url, draft.command, draft.args) = (read.url, read.command, read.args);
            (draft.cwd, draft.image, draft.script) = (read.cwd, read.image, read.script);
        }
        for row in read.keys {
            match draft.keys.iter_mut().find(|own| own.name == row.name) {
                Some(own) => *own = row,
                None => draft.keys.push(row),
            }
        }
        draft.keys.retain(|row| !row.is_blank());
        draft.is_closed |= read.is_closed;
        for row in read.values {
            match draft.values.iter_mut().find(|own| own.key == row.key) {
                Some(own) => *own = row,
                None => draft.values.push(row),
            }
        }
        draft.values.retain(|row: &ValueRow| !row.is_blank());
        merge_rest(&mut draft.rest, read.rest);
    }

    /// Takes a manifest into the form: its variables are keys, and its scopes other members.
    fn manifest(&mut self, manifest: &Value) {
        let Some(members) = manifest.as_object() else {
            self.notices.push("manifest: left out, since it is no object".to_owned());
            return;
        };
        let mut entry = Map::new();
        let mut schema = Map::new();
        for (key, value) in members {
            match key.as_str() {
                "env" => schema.extend(variables(value)),
                key if SCOPES.contains(&key) => drop(entry.insert(key.to_owned(), value.clone())),
                other => {
                    let text = format!("{other}: left out, since a manifest has no such member");
                    self.notices.push(text);
                }
            }
        }
        entry.insert("config_schema".to_owned(), schema.into());
        let read = Draft::of_definition(&entry.into());
        let rows = read.keys.len();
        self.merge(read);
        self.from.push_str(&format!(" The keys of the form have its {rows} variables."));
        if self.draft.image.is_empty() && self.draft.url.is_empty() && self.draft.command.is_empty()
        {
            self.draft.shape = Shape::Image;
        }
    }

    /// The box after a text was read into the form.
    fn done(self) -> Paste {
        let mut paste = fields::paste("", true);
        paste.taken = Some(self.taken(Vec::new()));
        paste
    }

    fn taken(self, choices: Vec<(String, Words)>) -> Taken {
        let notices = self.notices.iter().take(NOTICES);
        Taken {
            from: Words::new(&self.from),
            notices: notices.map(|notice| Words::within(notice, NOTICE_MAX)).collect(),
            faults: Vec::new(),
            choices,
        }
    }
}

/// Adds the parts that cannot be used to the result.
fn told(paste: &mut Paste, faults: &[PastedFault]) {
    let Some(taken) = &mut paste.taken else { return };
    taken.faults = faults
        .iter()
        .take(NOTICES)
        .map(|PastedFault { place, message, remedy }| {
            Words::within(&format!("{place}: {message}; {remedy}"), NOTICE_MAX)
        })
        .collect();
}

fn id_of(server: &PastedServer) -> Option<&str> {
    server.value.get("id").and_then(Value::as_str)
}

/// True for a place that is another one, or inside it.
fn is_within(place: &str, outer: &str) -> bool {
    let rest = place.strip_prefix(outer);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Puts a text into a field, if there is one.
fn put(field: &mut String, text: String) {
    if !text.is_empty() {
        *field = text;
    }
}

/// Moves `env` to the default values, as the catalog reads it.
fn env_as_values(members: &mut Map<String, Value>) {
    let Some(Value::Object(env)) = members.get("env") else { return };
    let env = env.clone();
    let config = members.entry("default_config").or_insert_with(|| Map::new().into());
    if let Some(config) = config.as_object_mut()
        && !env.keys().any(|key| config.contains_key(key))
    {
        config.extend(env);
        members.remove("env");
    }
}

/// The variables of a manifest as keys of a schema: they are required unless it says otherwise.
fn variables(env: &Value) -> Map<String, Value> {
    let mut schema = Map::new();
    for (name, rules) in env.as_object().into_iter().flatten() {
        let mut rules = rules.clone();
        if let Some(rules) = rules.as_object_mut() {
            rules.entry("required").or_insert(Value::Bool(true));
        }
        schema.insert(name.clone(), rules);
    }
    schema
}

/// Adds members to those of the form; the new ones count. A text that is no JSON stays in front.
fn merge_rest(own: &mut String, read: String) {
    if own.trim().is_empty() || read.is_empty() {
        put(own, read);
        return;
    }
    let both = (serde_json::from_str(own), serde_json::from_str(&read));
    if let (Ok(Value::Object(mut members)), Ok(Value::Object(new))) = both {
        members.extend(new);
        *own = written(&members);
    } else {
        own.push('\n');
        own.push_str(&read);
    }
}

#[cfg(test)]
mod tests;
