//! The fields of narthex's notation as a dialect spells them, for messages about a client's file.

use serde_json::Value;

use super::dialect::Dialect;
use super::placeholder::Notation;
use crate::clients::Shape;

/// The fields of an entry, each under its name in narthex's own notation and under the name that
/// the file has for it.
#[must_use]
pub fn spelling(shape: Shape, entry: &Value) -> Vec<(&'static str, String)> {
    let dialect = Dialect::of(shape);
    let mut urls = dialect.urls.iter().map(|(field, _)| *field);
    let url = urls.find(|field| entry.get(field).is_some());
    let fields = [
        ("command", Some(dialect.command)),
        ("env", Some(dialect.env)),
        ("cwd", dialect.cwd),
        ("url", url),
        ("timeoutMs", dialect.timeout.map(|duration| duration.field)),
        ("mountTimeoutMs", dialect.start.map(|duration| duration.field)),
        ("tools.allow", dialect.lists.allow),
        ("tools.deny", dialect.lists.deny),
    ];
    let fields = fields.into_iter().filter_map(|(own, field)| Some((own, field?.to_owned())));
    let headers = ("headers", dialect.headers.join("."));
    fields.chain(std::iter::once(headers)).collect()
}

/// A variable as a dialect writes it, such as `${env:NAME}`; `None` if its clients take every such
/// text as it is.
#[must_use]
pub fn variable_notation(shape: Shape) -> Option<&'static str> {
    Dialect::of(shape).notation.variable()
}

/// True for a dialect that writes variables as `env:NAME`, so that its files cannot mean anything
/// else by one.
#[must_use]
pub fn is_by_env(shape: Shape) -> bool {
    match Dialect::of(shape).notation {
        Notation::Editor | Notation::Opencode => true,
        Notation::None
        | Notation::Braced
        | Notation::Shell
        | Notation::Crush
        | Notation::Continue => false,
    }
}
