//! The form of an entry, as the view draws it.

use narthex_console::{
    pages::catalog::form::{EntryForm, Outcome, Paste, Row, ShapeFields},
    parts::{
        Words,
        form::{Choice, Field, Input},
    },
};

use super::draft::{Draft, Fault, KeyRow, Shape, TYPES, ValueRow};

/// Maximum number of characters of a fault, of which several may be at one field.
const FAULT_MAX: usize = 2_000;
/// The reason why an id cannot be changed.
const FIXED: &str = "The id never changes: agents refer to it.";

/// The parts of a form beside its draft.
pub(super) struct Around {
    pub(super) action: String,
    /// The version tag of the stored entry; empty for a new one.
    pub(super) tag: String,
    /// True if the id cannot be chosen any more.
    pub(super) is_fixed: bool,
    pub(super) paste: Paste,
    pub(super) faults: Vec<Fault>,
    pub(super) outcome: Outcome,
}

/// The form of a draft.
pub(super) fn form(draft: &Draft, around: Around) -> EntryForm {
    let Around { action, tag, is_fixed, paste, faults, mut outcome } = around;
    let faults = Faults(faults);
    let whole = faults.0.iter().filter(|fault| fault.field.is_none());
    outcome.faults.extend(whole.map(|fault| Words::within(&fault.message, FAULT_MAX)));
    let keys = draft.keys.iter().enumerate();
    let values = draft.values.iter().enumerate();
    let closed =
        Field::new("closed", "No other key is accepted", Input::Check { is_on: draft.is_closed });
    let rest = Field::new("rest", "Other members, as JSON", Input::area(&draft.rest, 6));
    EntryForm {
        action,
        is_off: draft.is_disabled(),
        paste,
        basics: basics(draft, &faults, is_fixed),
        shape: shape(draft),
        shapes: shapes(draft, &faults),
        keys: keys.map(|(n, row)| key(&faults, n, row)).collect(),
        closed: closed.help("Once a key is declared above, other keys are refused in any case."),
        values: values.map(|(n, row)| value(draft, &faults, n, row)).collect(),
        rest: faults.on(rest.help(
            "Such as auth, limits, tool_scopes, tools and timeoutMs; see \
             docs/reference/catalog.md. A secret is a reference here as well.",
        )),
        outcome,
        tag,
    }
}

/// The box for a pasted text, without a result.
pub(super) fn paste(text: &str, is_open: bool) -> Paste {
    let field = Field::new("paste", "An entry as another program writes it", Input::area(text, 6));
    let field = field.help(
        "From Claude, Cursor, VS Code, Codex, Zed and others: mcpServers, servers, TOML, one entry \
         alone, a server of the catalog, or the manifest of an image.",
    );
    Paste { text: field, is_open, taken: None }
}

/// The faults of a form.
struct Faults(Vec<Fault>);

impl Faults {
    /// The field with its faults.
    fn on(&self, field: Field) -> Field {
        let of_field = self.0.iter().filter(|fault| fault.field.as_deref() == Some(&*field.name));
        let told: Vec<_> = of_field.map(|fault| fault.message.as_str()).collect();
        if told.is_empty() {
            return field;
        }
        Field { fault: Some(Words::within(&told.join(". "), FAULT_MAX)), ..field }
    }

    fn is_at(&self, field: &Field) -> bool {
        self.0.iter().any(|fault| fault.field.as_deref() == Some(&*field.name))
    }
}

fn line(name: &str, label: &str, value: &str, example: &str) -> Field {
    let input = Input::Line { value: value.to_owned(), example: example.to_owned() };
    Field::new(name, label, input)
}

fn basics(draft: &Draft, faults: &Faults, is_fixed: bool) -> Vec<Field> {
    let id = line("id", "Id", &draft.id, "docs").required();
    let id = match is_fixed {
        true => id.off(FIXED),
        false => id.help("Small letters, digits and -. Agents refer to it, and it never changes."),
    };
    let name = line("name", "Name", &draft.name, "Papers").help("For people; empty for the id.");
    let description = line("description", "Purpose", &draft.description, "");
    [id, name, description].map(|field| faults.on(field)).into()
}

fn shape(draft: &Draft) -> Field {
    let offered = Shape::ALL.into_iter().filter(|shape| {
        *shape != Shape::Script || draft.shape == Shape::Script || !draft.script.is_empty()
    });
    let options = offered.map(|shape| Choice {
        value: shape.word().to_owned(),
        label: Words::new(shape.label()),
        is_chosen: shape == draft.shape,
    });
    Field::new("shape", "How it is reached", Input::Choice { options: options.collect() })
}

fn shapes(draft: &Draft, faults: &Faults) -> Vec<ShapeFields> {
    let transport = if draft.is_sse { "sse" } else { "http" };
    let url = vec![
        line("url", "Address", &draft.url, "https://docs.example.com/mcp")
            .help("Placeholders such as ${scope.team} are filled in for each run."),
        Field::new("transport", "Transport", Input::choice(&["http", "sse"], transport))
            .help("http is Streamable HTTP, and finds out about older servers by itself."),
    ];
    let command = vec![
        line("command", "Program", &draft.command, "npx"),
        Field::new("args", "Arguments, one a line", Input::area(&draft.args, 4))
            .help("All users of the machine can read them: secrets belong to the variables below."),
        line("cwd", "Working folder", &draft.cwd, ""),
    ];
    let image =
        vec![line("image", "Image", &draft.image, "registry.example.com/docs:1.2.0").help(
            "Paste the image's manifest above: this version neither fetches nor starts images.",
        )];
    let script = vec![line("script", "Script", &draft.script, "")];
    let all = [url, command, image, script];
    let titles = ["Remote address", "Command", "Container image", "Script of the daemon"];
    let each = Shape::ALL.into_iter().zip(titles).zip(all);
    each.map(|((shape, title), fields)| {
        let is_used = |field: &Field| match &field.input {
            Input::Line { value, .. } | Input::Area { value, .. } => !value.is_empty(),
            Input::Unseen | Input::Check { .. } | Input::Choice { .. } => false,
        };
        let is_shown = shape != draft.shape
            && fields.iter().any(|field| is_used(field) || faults.is_at(field));
        let fields = fields.into_iter().map(|field| faults.on(field)).collect();
        ShapeFields { word: shape.word(), title, is_shown, fields }
    })
    .collect()
}

fn key(faults: &Faults, n: usize, row: &KeyRow) -> Row {
    let at = |field: &str| format!("key.{n}.{field}");
    let value_type = if row.value_type.is_empty() { "string" } else { &*row.value_type };
    let check = |field: &str, label, is_on| Field::new(at(field), label, Input::Check { is_on });
    let fields = [
        line(&at("name"), "Key", &row.name, "api_key"),
        Field::new(at("type"), "Type", Input::choice(&TYPES, value_type)),
        check("secret", "Secret", row.is_secret),
        check("required", "Required", row.is_required),
        line(&at("description"), "Purpose", &row.description, ""),
        Field::new(at("more"), "More, as JSON", Input::area(&row.more, 2))
            .help("label, sensitive, internal, example, enum, pattern, default, header, env"),
    ];
    let title = match row.name.is_empty() {
        true => format!("Key {}", n + 1),
        false => format!("Key {}", row.name),
    };
    Row {
        title: Words::within(&title, 80),
        fields: fields.map(|field| faults.on(field)).into(),
        remove: format!("drop.key.{n}"),
    }
}

fn value(draft: &Draft, faults: &Faults, n: usize, row: &ValueRow) -> Row {
    // No page shows what could be the value of a secret.
    let shown = if draft.has_literal(row) { "" } else { &*row.value };
    let (input, example) = match draft.is_hidden(&row.key) {
        _ if shown.contains('\n') => (Input::area(shown, 4), ""),
        true => (line("", "", shown, "${NAME}").input, "${NAME}"),
        false => (Input::line(shown), ""),
    };
    let mut value = Field::new(format!("value.{n}.value"), "Value", input);
    if !example.is_empty() {
        value = value.help("A reference such as ${NAME}: its value is never written here.");
    }
    let mut fields = vec![line(&format!("value.{n}.key"), "Key", &row.key, "api_key"), value];
    if row.is_kept {
        let kept = Field::new(
            format!("value.{n}.kept"),
            "Keep the stored value",
            Input::Check { is_on: true },
        );
        fields.push(kept.help("It is a literal that no page shows; it counts while this is on."));
    }
    let title = match row.key.is_empty() {
        true => format!("Value {}", n + 1),
        false => format!("Value of {}", row.key),
    };
    Row {
        title: Words::within(&title, 80),
        fields: fields.into_iter().map(|field| faults.on(field)).collect(),
        remove: format!("drop.value.{n}"),
    }
}
