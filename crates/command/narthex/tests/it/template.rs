//! JSON-RPC messages as unusual as the grammar allows, with holes for the values that a gateway may
//! change.

use proptest::{collection::vec, prelude::*, sample::select};

/// Characters that no JSON text has raw.
pub(crate) const ID: &str = "\u{1}";
pub(crate) const TOKEN: &str = "\u{2}";
pub(crate) const STATE: &str = "\u{3}";

/// The values for the holes, as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holes {
    pub(crate) id: String,
    pub(crate) token: String,
    pub(crate) state: String,
}

pub(crate) fn fill(template: &str, holes: &Holes) -> String {
    let filled = template.replace(ID, &holes.id).replace(TOKEN, &holes.token);
    filled.replace(STATE, &holes.state)
}

/// A text as streams and lines carry it: line ends, which come only between tokens, are blanks.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

const BLANKS: [&str; 9] = ["", "", "", "", "", " ", "\t", "\n", "\r "];
const LEAVES: [&str; 24] = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1.10",
    "-1.50e+005",
    "1E400",
    "1e-400",
    "0.1e1",
    "12345678901234567890123",
    "-9223372036854775809",
    "1.0000000000000000000000001",
    r#""""#,
    r#""plain""#,
    r#""\u0041\u00e9\ud83d\ude00""#,
    r#""\ud800 alone""#,
    r#""\/\b\f\n\r\t\\""#,
    r#""é😀 ""#,
    r#""\u0000""#,
    r#""{\"a\":[1,]}""#,
    r#""\u001b[0m""#,
    "\"\u{2028}\u{feff}\u{7f}\"",
    "[]",
];
/// Keys inside values: some mean something elsewhere, and nothing keeps one from standing twice.
const KEYS: [&str; 16] = [
    "type",
    "text",
    "id",
    "method",
    "result",
    "jsonrpc",
    "_meta",
    "",
    " ",
    "ключ",
    "a\\u0062",
    "~\\/",
    "x-vendor",
    "progressToken",
    "__proto__",
    "\\u0000",
];
/// Ends of unknown keys where keys must differ.
const ENDINGS: [&str; 8] = ["", "-vendor", "\\u0041", "é", "\\/", " ", ".name/space", "😀"];

fn blank() -> impl Strategy<Value = &'static str> {
    select(&BLANKS[..])
}

fn joined(open: &str, close: &str, items: &[String]) -> String {
    format!("{open}{}{close}", items.join(","))
}

fn member(key: &str, value: &str, blanks: [&str; 4]) -> String {
    let [a, b, c, d] = blanks;
    format!("{a}\"{key}\"{b}:{c}{value}{d}")
}

fn blanks() -> impl Strategy<Value = [&'static str; 4]> {
    [blank(), blank(), blank(), blank()]
}

/// Any value.
pub(crate) fn value() -> BoxedStrategy<String> {
    let leaf = select(&LEAVES[..]).prop_map(str::to_owned);
    let nested = leaf.prop_recursive(6, 24, 4, |inner| {
        let item = (blank(), inner.clone(), blank()).prop_map(|(a, v, b)| format!("{a}{v}{b}"));
        let pair = (select(&KEYS[..]), inner, blanks()).prop_map(|(k, v, b)| member(k, &v, b));
        prop_oneof![
            vec(item, 1..4).prop_map(|items| joined("[", "]", &items)),
            vec(pair, 0..4).prop_map(|items| joined("{", "}", &items)),
        ]
    });
    nested.boxed()
}

/// Any object.
pub(crate) fn any_object() -> impl Strategy<Value = String> {
    object(Vec::new())
}

/// An object with these members and unknown ones, in any order.
fn object(members: Vec<(&'static str, BoxedStrategy<String>)>) -> BoxedStrategy<String> {
    let known: Vec<_> = members
        .into_iter()
        .map(|(key, value)| (value, blanks()).prop_map(move |(v, b)| member(key, &v, b)).boxed())
        .collect();
    let unknown = vec((select(&ENDINGS[..]), value(), blanks()), 0..3).prop_map(|unknown| {
        let named = |(at, (end, value, blanks)): (usize, (&str, String, [&str; 4]))| {
            member(&format!("x{at}{end}"), &value, blanks)
        };
        unknown.into_iter().enumerate().map(named).collect::<Vec<_>>()
    });
    (known, unknown)
        .prop_map(|(mut known, unknown)| {
            known.extend(unknown);
            known
        })
        .prop_shuffle()
        .prop_map(|items| joined("{", "}", &items))
        .boxed()
}

fn just(text: &str) -> BoxedStrategy<String> {
    Just(text.to_owned()).boxed()
}

fn quoted(text: &str) -> BoxedStrategy<String> {
    just(&format!("\"{text}\""))
}

/// Ids and tokens as clients and servers spell them.
pub(crate) fn id() -> impl Strategy<Value = String> {
    select(vec!["1", "-7", "0", "12345678901234567890123", r#""""#, r#""a\u0062""#, r#""é\/😀""#])
        .prop_map(str::to_owned)
}

/// A request with its method and the value of `Mcp-Name`, if it has one.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) name: Option<&'static str>,
    pub(crate) template: String,
}

/// A method, and for an item: the member of `params` that names it, and the name as written and as
/// meant.
type Shape = (&'static str, Option<(&'static str, &'static str, &'static str)>);

const SHAPES: [Shape; 6] = [
    ("tools/call", Some(("name", r#""t""#, "t"))),
    ("tools/call", Some(("name", r#""\u0074""#, "t"))),
    ("prompts/get", Some(("name", r#""p""#, "p"))),
    ("resources/read", Some(("uri", r#""x:\/\/r""#, "x://r"))),
    ("vendor/odd.method", None),
    ("x", None),
];

/// A request that both kinds of peers accept. `meta` has the members that the era requires.
pub(crate) fn request(meta: &'static [(&'static str, &'static str)]) -> BoxedStrategy<Request> {
    (select(&SHAPES[..]), any::<bool>())
        .prop_flat_map(move |((method, named), has_token)| {
            let mut members = vec![];
            if let Some((key, written, _)) = named {
                members.push((key, just(written)));
            }
            if method == "tools/call" {
                members.push(("arguments", any_object().boxed()));
            }
            if has_token || !meta.is_empty() {
                members.push(("_meta", meta_object(meta, has_token)));
            }
            let whole = message(method, object(members), true);
            let name = named.map(|(_, _, meant)| meant);
            whole.prop_map(move |template| Request { method, name, template })
        })
        .boxed()
}

fn meta_object(
    meta: &'static [(&'static str, &'static str)],
    has_token: bool,
) -> BoxedStrategy<String> {
    let mut members: Vec<_> = meta.iter().map(|(key, value)| (*key, just(value))).collect();
    if has_token {
        members.push(("progressToken", just(TOKEN)));
    }
    object(members)
}

/// A request or notification with these params.
fn message(
    method: &'static str,
    params: BoxedStrategy<String>,
    has_id: bool,
) -> BoxedStrategy<String> {
    let mut members =
        vec![("jsonrpc", quoted("2.0")), ("method", quoted(method)), ("params", params)];
    if has_id {
        members.push(("id", just(ID)));
    }
    object(members)
}

/// A request of a server.
pub(crate) fn question(method: &'static str) -> BoxedStrategy<String> {
    message(method, any_object().boxed(), true)
}

/// A vendor's notification.
pub(crate) fn notification(meta: &'static [(&'static str, &'static str)]) -> BoxedStrategy<String> {
    let members = match meta {
        [] => vec![],
        meta => vec![("_meta", meta_object(meta, false))],
    };
    message("notifications/vendor-odd", object(members), false)
}

/// A report of progress.
pub(crate) fn progress() -> BoxedStrategy<String> {
    let members = vec![("progressToken", just(TOKEN)), ("progress", just("1.10"))];
    message("notifications/progress", object(members), false)
}

/// A result or an error, under the id of the request.
pub(crate) fn answer() -> BoxedStrategy<String> {
    let block = prop_oneof![
        just(r#"{"type":"text","text":"a","type2":1e400}"#),
        just(r#"{"text":"b","type":"text","type":"text"}"#),
        just(r#"{"type":"vendor/hologram","photons":12345678901234567890123}"#),
        value(),
    ];
    let content = vec(block, 0..4).prop_map(|blocks| joined("[", "]", &blocks)).boxed();
    let meta = object(vec![("deep", value())]);
    let result = object(vec![("content", content), ("_meta", meta)]);
    let error = object(vec![
        ("code", just("-32099")),
        ("message", quoted("odd \\u00e9")),
        ("data", value()),
    ]);
    let whole = |key, body| object(vec![("jsonrpc", quoted("2.0")), ("id", just(ID)), (key, body)]);
    prop_oneof![3 => whole("result", result), 1 => whole("error", error)].boxed()
}

/// An interim result with state that only the server reads.
pub(crate) fn interim() -> BoxedStrategy<String> {
    let state = just(STATE);
    let asks = just(r#"{"k":{"method":"elicitation/create","params":{"x":1e400}}}"#);
    let result = object(vec![
        ("resultType", quoted("input_required")),
        ("requestState", state),
        ("inputRequests", asks),
    ]);
    object(vec![("jsonrpc", quoted("2.0")), ("id", just(ID)), ("result", result)])
}

/// Answers to a server's questions: objects, and otherwise of any kind.
fn answers() -> BoxedStrategy<String> {
    let one = (select(&["k", "x-vendor"][..]), any_object(), blanks());
    let one = one.prop_map(|(key, answer, blanks)| format!("{{{}}}", member(key, &answer, blanks)));
    prop_oneof![Just("{}".to_owned()), one].boxed()
}

/// The same call again, with the server's state.
pub(crate) fn retry(meta: &'static [(&'static str, &'static str)]) -> BoxedStrategy<String> {
    let params = object(vec![
        ("name", quoted("t")),
        ("requestState", just(STATE)),
        ("inputResponses", answers()),
        ("_meta", meta_object(meta, false)),
    ]);
    message("tools/call", params, true)
}
