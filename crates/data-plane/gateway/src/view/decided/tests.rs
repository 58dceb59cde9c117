//! Parameters that two readers may read differently, in each object of the table.

use bytes::Bytes;
use narthex_wire::{Limits, MessageError};

use super::*;

/// Checks parameters like a door: a message that `parse` refuses has no meaning, either.
fn checked(handling: Handling, params: &str) -> Result<(), String> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}"#);
    let message = Message::parse(Bytes::from(text), &Limits::default())
        .map_err(|error: MessageError| format!("parse: {error}"))?;
    check_decided(handling, &message).map_err(|fault| fault.to_string())
}

/// An object of the table: the handling of its requests, its path, and its fields.
struct Place {
    handling: Handling,
    path: Vec<&'static str>,
    fields: &'static [Field],
}

/// Each object of the table, also objects inside of others.
fn places() -> Vec<Place> {
    fn add(places: &mut Vec<Place>, handling: Handling, path: &[&'static str], kind: Type) {
        let Type::Object(fields) = kind else { return };
        places.push(Place { handling, path: path.to_vec(), fields });
        for (name, kind) in fields {
            add(places, handling, &[path, &[*name]].concat(), *kind);
        }
    }
    let mut places = Vec::new();
    for row in ROWS {
        add(&mut places, row.handling.unwrap_or(Handling::Tool), &[row.member], row.kind);
    }
    add(&mut places, Handling::Tool, &["_meta"], Type::Object(META));
    places
}

impl Place {
    /// The parameters with these members in this object.
    fn with(&self, members: &str) -> String {
        self.path
            .iter()
            .rev()
            .fold(format!("{{{members}}}"), |inner, name| format!(r#"{{"{name}":{inner}}}"#))
    }

    #[track_caller]
    fn refused(&self, members: &str) -> String {
        let params = self.with(members);
        checked(self.handling, &params).expect_err(&params)
    }
}

/// A value of a type, and values that are not of it.
fn samples(kind: Type) -> (&'static str, &'static [&'static str]) {
    match kind {
        Type::Flag => ("true", &["1", "{}", "7"]),
        Type::Text => (r#""x""#, &[r#"["x"]"#, "{}", "7"]),
        Type::Texts => (r#"["x","y"]"#, &[r#"["x",{}]"#, "{}", "7"]),
        Type::Token => ("7", &["1.5", "{}", "[]", "null"]),
        Type::Any => ("7", &[]),
        Type::Object(_) => (r#"{"acme":1}"#, &["7", "[]", r#""x""#, "true"]),
        Type::Objects => (r#"{"a":{},"b":{"c":1}}"#, &["7", "[]", r#"{"a":7}"#, r#"{"a":[]}"#]),
    }
}

/// S12: in each object of the table, a value that two readers may read differently is refused.
#[test]
fn s12_ambiguous_members_of_checked_objects_are_refused() {
    for place in places() {
        let good = place.with(r#""acme":{"a":1},"other":[]"#);
        assert_eq!(checked(place.handling, &good), Ok(()), "{good}");
        place.refused(r#""acme":1,"acme":2"#);
        for (name, kind) in place.fields {
            let (good, bad) = samples(*kind);
            let one = place.with(&format!(r#""{name}":{good}"#));
            assert_eq!(checked(place.handling, &one), Ok(()), "{one}");
            if *kind != Type::Token {
                let none = place.with(&format!(r#""{name}":null"#));
                assert_eq!(checked(place.handling, &none), Ok(()), "{none}");
            }
            for bad in bad {
                let refused = place.refused(&format!(r#""{name}":{bad}"#));
                assert!(refused.contains(&format!("{name}` must be")), "{refused}");
            }
            place.refused(&format!(r#""{name}":{good},"{name}":{good}"#));
            let escaped = format!("\\u{:04x}{}", u32::from(name.as_bytes()[0]), &name[1..]);
            place.refused(&format!(r#""{name}":{good},"{escaped}":{good}"#));
            let spellings = [
                name.to_uppercase(),
                format!(" {name}"),
                format!("{name}\\t"),
                format!("{name}\u{a0}"),
            ];
            for spelt in spellings {
                place.refused(&format!(r#""{spelt}":{good}"#));
                place.refused(&format!(r#""{name}":{good},"{spelt}":{good}"#));
            }
        }
    }
}

/// S12: a checked object appears once, under its own name, and where it is needed.
#[test]
fn s12_checked_objects_are_refused_if_duplicated_misspelt_or_missing() {
    for row in ROWS {
        let handling = row.handling.unwrap_or(Handling::Tool);
        let member = row.member;
        let (_, bad) = samples(row.kind);
        for bad in bad {
            checked(handling, &format!(r#"{{"{member}":{bad}}}"#)).unwrap_err();
        }
        checked(handling, &format!(r#"{{"{member}":{{}}," {member}":{{}}}}"#)).unwrap_err();
        checked(handling, &format!(r#"{{"{member}":{{}},"{member}":{{}}}}"#)).unwrap_err();
        checked(handling, &format!(r#"{{"{}":{{}}}}"#, member.to_uppercase())).unwrap_err();
        assert_eq!(checked(handling, "{}").is_err(), row.is_needed, "{member}");
    }
    assert_eq!(checked(Handling::Tool, r#"{"notifications":7}"#), Ok(()));
}

/// S12: answers to questions have each key once, whatever the keys are, and are objects.
#[test]
fn s12_ambiguous_answers_to_questions_are_refused() {
    let given =
        |answers: &str| checked(Handling::Tool, &format!(r#"{{"inputResponses":{answers}}}"#));
    assert_eq!(given(r#"{"question-1":{"action":"accept"},"x":{}}"#), Ok(()));
    for (answers, why) in [
        (r#"{"question-1":{},"question-1":{}}"#, "`params.inputResponses` has a key twice"),
        (r#"{"question-1":{},"question\u002d1":{}}"#, "`params.inputResponses` has a key twice"),
        (r#"{"question-1":7}"#, "`params.inputResponses.question-1` must be an object"),
        (r#"[]"#, "`params.inputResponses` must be an object of objects"),
    ] {
        let refused = given(answers).unwrap_err();
        assert!(refused.contains(why), "{answers}: {refused}");
    }
}

/// S12: capabilities mean the same in the handshake as in a request, and a fault names its place.
#[test]
fn s12_ambiguous_capabilities_are_refused_with_their_place() {
    for (capabilities, place) in [
        (r#"{"sampling":{},"sampling":{}}"#, "`params.capabilities` has a key twice"),
        (r#"{"Sampling":{}}"#, "`params.capabilities` has the key `Sampling`"),
        (r#"{"elicitation":{"url":{},"URL":{}}}"#, "`params.capabilities.elicitation` has the key"),
        (r#"{"roots":true}"#, "`params.capabilities.roots` must be an object"),
        (r#"{"tasks":[]}"#, "`params.capabilities.tasks` must be an object"),
    ] {
        let refused = check_capabilities(Raw::new(capabilities.as_bytes())).unwrap_err();
        assert!(refused.to_string().contains(place), "{capabilities}: {refused}");
    }
    for fine in ["{}", r#"{"roots":{"listChanged":true},"sampling":null,"acme":7}"#] {
        assert_eq!(check_capabilities(Raw::new(fine.as_bytes())), Ok(()), "{fine}");
    }
}

/// S12: a server's question has one meaning for the gateway, which compares it with the client's
/// capabilities, and for the client.
#[test]
fn s12_ambiguous_questions_of_servers_are_refused() {
    let asked = |method: &str, params: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        check_question(&Message::parse(Bytes::from(text), &Limits::default()).unwrap())
    };
    for (method, params, why) in [
        ("elicitation/create", r#"{"mode":"form","Mode":"url"}"#, "has the key `Mode`"),
        ("elicitation/create", r#"{"Mode":"url"}"#, "has the key `Mode`"),
        ("elicitation/create", r#"{"mode":7}"#, "`params.mode` must be"),
        ("sampling/createMessage", r#"{"Tools":[]}"#, "has the key `Tools`"),
    ] {
        let refused = asked(method, params).unwrap_err().to_string();
        assert!(refused.contains(why), "{params}: {refused}");
    }
    asked("elicitation/create", r#"{"message":"m","mode":"form"}"#).unwrap();
    asked("vendor/ask", r#"{"Mode":7}"#).unwrap();
}

/// S12: questions in an answer of a server have one meaning, too; keys of vendors pass.
#[test]
fn s12_ambiguous_questions_in_answers_of_servers_are_refused() {
    let asked = |questions: &str| {
        let result = format!(r#"{{"resultType":"input_required","inputRequests":{questions}}}"#);
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
        check_questions(&Message::parse(Bytes::from(text), &Limits::default()).unwrap())
    };
    let of = |params: &str| {
        asked(&format!(r#"{{"a":{{"method":"elicitation/create","params":{params}}}}}"#))
    };
    for (params, why) in [
        (r#"{"mode":"form","Mode":"url"}"#, "has the key `Mode`"),
        (r#"{"mode":"form","mode":"url"}"#, "twice"),
        ("7", "must be"),
    ] {
        let refused = of(params).unwrap_err().to_string();
        assert!(refused.contains(why), "{params}: {refused}");
    }
    of(r#"{"mode":"form","message":"m","acmeHint":{"Mode":1},"_meta":{"x":1}}"#).unwrap();
    for (twice, why) in [
        (r#"{"a":{"method":"roots/list"},"a":{"method":"roots/list"}}"#, "twice"),
        (r#"{"a":{"method":"roots/list","Method":"elicitation/create"}}"#, "has the key `Method`"),
        (r#"{"a":{"method":"roots/list","method":"elicitation/create"}}"#, "twice"),
    ] {
        let refused = asked(twice).unwrap_err().to_string();
        assert!(refused.contains(why), "{twice}: {refused}");
    }
    for fine in ["{}", "null", r#"{"a":{"method":"vendor/ask","params":{"Mode":7}},"b":{}}"#] {
        asked(fine).unwrap();
    }
}
