//! The value of each placeholder, and the refused placeholders.

use std::path::Path;

use super::*;

fn env(name: &str) -> Option<String> {
    match name {
        "A" => Some("alpha".to_owned()),
        "EMPTY" => Some(String::new()),
        "NESTED" => Some("${env:A} ${workspaceRoot} $${".to_owned()),
        _ => None,
    }
}

fn run(text: &str, dialect: Dialect) -> Result<Expanded, PlaceholderError> {
    let context = LoadContext {
        file: Path::new("mcp.json"),
        workspace_root: Path::new("/w"),
        env: Env::Values(&env),
    };
    expand(text, dialect, &context)
}

fn strict(text: &str) -> Result<String, String> {
    run(text, Dialect::Strict).map(|out| out.value).map_err(|error| error.to_string())
}

/// E113, E14: whole, inside a string, and several in one.
#[test]
fn e113_placeholders_expand_whole_and_inside_a_string() {
    for (text, value) in [
        ("", ""),
        ("plain $ { } $x", "plain $ { } $x"),
        ("${env:A}", "alpha"),
        ("${env:A}/${env:A}-${workspaceRoot}", "alpha/alpha-/w"),
        ("${env:EMPTY}", ""),
        ("ä${env:A}ö", "äalphaö"),
    ] {
        assert_eq!(strict(text).as_deref(), Ok(value), "{text}");
    }
}

/// E114: as in a shell, the default counts for a variable that is unset or empty.
#[test]
fn e114_a_default_replaces_an_unset_or_empty_variable() {
    for (text, value) in [
        ("${env:NO:-x y}", "x y"),
        ("${env:NO:-}", ""),
        ("${env:EMPTY:-x}", "x"),
        ("${env:A:-x}", "alpha"),
        ("${env:NO:-a:-b}", "a:-b"),
    ] {
        assert_eq!(strict(text).as_deref(), Ok(value), "{text}");
    }
}

#[test]
fn e114_a_missing_variable_is_named() {
    let error = strict("x-${env:NO_SUCH}").unwrap_err();
    assert!(error.contains("`NO_SUCH` is not set"), "{error}");
}

/// E115: names that cannot be a variable's.
#[test]
fn e115_bad_names_are_refused() {
    for text in ["${env:}", "${env: A}", "${env:1A}", "${env:A-B}", "${env::-x}", "${env:${env:A}}"]
    {
        assert!(
            matches!(run(text, Dialect::Strict), Err(PlaceholderError::BadName { .. })),
            "{text}"
        );
    }
    assert!(strict("${env:A").unwrap_err().contains("no closing"));
    assert!(strict("${env:NO:-${env:A}}").unwrap_err().contains("another placeholder"));
}

/// S30: the value of a variable is never read for placeholders again.
#[test]
fn s30_a_value_with_placeholder_text_stays_literal() {
    assert_eq!(strict("<${env:NESTED}>").unwrap(), "<${env:A} ${workspaceRoot} $${>");
    let tolerant = run("${NESTED}", Dialect::Tolerant).unwrap();
    assert_eq!(tolerant.value, "${env:A} ${workspaceRoot} $${");
}

#[test]
fn two_dollars_and_a_brace_are_a_literal_brace() {
    for (text, value) in [
        ("$${env:A}", "${env:A}"),
        ("$${", "${"),
        ("a$$b", "a$$b"),
        ("$${x}${env:A}", "${x}alpha"),
        ("$$${", "$${"),
    ] {
        assert_eq!(strict(text).as_deref(), Ok(value), "{text}");
    }
}

/// D7: the other place's dialect is not expanded, and the message gives the remedy.
#[test]
fn d7_unknown_placeholders_name_the_remedy() {
    for (text, remedy) in [
        ("${HOME}", "write `${env:HOME}`"),
        ("${env.HOME}", "write `${env:HOME}`"),
        ("${scope.X}", "use `${env:NAME}`"),
        ("${input:key}", "write `${env:key}`"),
        ("${workspaceFolder}", "write `${workspaceRoot}`"),
        ("${}", "use `${env:NAME}`"),
    ] {
        let error = strict(text).unwrap_err();
        assert!(error.contains(remedy), "{text}: {error}");
    }
}

/// D7: other programs' spellings are rewritten and reported; reports leave out their defaults.
#[test]
fn d7_plain_variables_are_rewritten_in_other_programs_files() {
    let out = run("${A} ${NO:-s3cret} ${workspaceFolder}", Dialect::Tolerant).unwrap();
    assert_eq!(out.value, "alpha s3cret /w");
    let expected =
        [("${A}", "${env:A}"), ("${NO}", "${env:NO}"), ("${workspaceFolder}", "${workspaceRoot}")];
    let expected = expected.map(|(theirs, ours)| (theirs.to_owned(), ours.to_owned()));
    assert_eq!(out.rewritten, expected);
    for (text, remedy) in [("${input:key}", "write `${env:key}`"), ("${NO}", "`NO`")] {
        let error = run(text, Dialect::Tolerant).unwrap_err().to_string();
        assert!(error.contains(remedy), "{text}: {error}");
    }
}

#[test]
fn errors_show_no_text_that_is_not_shaped_like_a_name() {
    for text in ["${p@ss word}", "${env:p@ss word}", "${env:NO:-${p@ss word}"] {
        let error = strict(text).unwrap_err();
        assert!(!error.contains("p@ss"), "{error}");
    }
}
