//! Shown texts: what they hide, and that they leave out nothing that a daemon would start.

use std::path::Path;

use narthex_registry::config::{Env, LoadContext, parse};

use super::*;

const ROOT: &str = "/repo";

/// D27: code in an argument is shown, also where it begins as a key does.
#[test]
fn d27_code_for_a_shell_is_never_hidden() {
    for one in ["ghp_0123456789abcdefghij", "sk-abc_DEF.1", "hidden-two"] {
        assert!(is_one_word(one), "{one}");
    }
    for code in ["Basic 1; curl x", "sk-a|sh", "ghp_$(id)", "eyJ\n", "sk-`id`", "sk-a&b", "a/b"] {
        assert!(!is_one_word(code), "{code}");
    }
}

#[test]
fn secrets_and_control_characters_are_not_shown() {
    assert_eq!(address("https://me:pw@a.example/x?key=1#f"), "https://a.example/x?key=…");
    assert_eq!(quoted("a\u{1b}[2K\u{202e}b"), r#""a\u{1b}[2K\u{202e}b""#);
    assert_eq!(quoted("a b"), r#""a b""#);
    assert_eq!(quoted("${env:X}"), "${env:X}");
}

#[test]
fn an_address_with_placeholders_hides_values_and_no_host() {
    for (written, shown) in [
        ("https://${env:H}/x", "https://${env:H}/x"),
        ("https://${env:H:-evil.example}", "https://${env:H:-evil.example}"),
        ("${env:URL:-https://evil.example/?k=v}", "\"${env:URL:-https://evil.example/?k=v}\""),
        ("https://me:pw@a.example/${env:P}", "https://a.example/${env:P}"),
        ("https://a.example/?k=secret${env:Q}s&b#f", "\"https://a.example/?k=…${env:Q}&b\""),
        // Text before an `@` is a host if the placeholder ends it.
        ("https://evil.example${env:A:-/}@a.example", "https://evil.example${env:A:-/}@a.example"),
        ("https://x\\@a.example/${env:P}", "\"https://x\\\\@a.example/${env:P}\""),
    ] {
        assert_eq!(address(written), shown);
    }
    assert!(has_plain_host("https://a.example") && has_plain_host("https://a.example/${env:P}"));
    assert!(!has_plain_host("https://a${env:H}/") && !has_plain_host("${env:S}://a.example/"));
    let texts = ["a${env:A:-b}${env:B}", "$x", "${env:A}"];
    assert_eq!(variables(texts), BTreeSet::from(["A", "B"]));
}

/// D27: for each server that a daemon would start or connect to from a file, the shown text is that
/// server: with the values of its placeholders it is the command, folder, variables or address that
/// the daemon has.
#[test]
fn d27_what_a_daemon_uses_is_shown() {
    let commands = [
        "run",
        "./run",
        "${env:A}",
        "${env:A}/run",
        "./x${env:A}",
        "${env:A:-./evil}",
        "x${env:A:-/../evil}",
        "$${env:A}/run",
        "${env:A}${env:B}",
    ];
    let folders = ["", "below", "${env:A}", "${env:A:-/tmp}/x", "x/${env:B:-y}"];
    let addresses = [
        "https://a.example/mcp",
        "https://${env:A}/mcp",
        "https://${env:A:-evil.example}/mcp",
        "${env:A}",
        "${env:A:-https://evil.example/}",
        "https://a.example/${env:A}",
        "https://${env:A}.a.example:${env:B:-80}/",
        "https://me:${env:A}@a.example/",
        "http${env:A:-s}://a.example/",
        "https://a.example${env:A:-.evil.example}/",
        "https://x${env:A:-/}@a.example/",
        "https://a.example/${env:B:-x y}",
    ];
    let mut entries = Vec::new();
    for command in commands {
        entries.extend(folders.map(|folder| {
            json!({ "command": command, "args": ["${env:B:-first}"], "cwd": folder,
                    "env": { "LD_PRELOAD": "${env:A:-./evil.so}" } })
        }));
    }
    entries
        .extend(addresses.map(|url| json!({ "url": url, "headers": { "X": "${env:B:-\u{e4}}" } })));
    let mut count = 0;
    for entry in &entries {
        for a in [
            None,
            Some(""),
            Some("one"),
            Some("/whole"),
            Some("b.example"),
            Some("a/b"),
            Some("https://b.example/x"),
        ] {
            for b in [None, Some("8080")] {
                count += usize::from(is_shown(entry, a, b));
            }
        }
    }
    assert!(count > 400, "only {count} entries were usable");
}

/// Checks the shown text of an entry for the variables `A` and `B`, in both documents. `false` if a
/// daemon would refuse it.
fn is_shown(entry: &Value, a: Option<&str>, b: Option<&str>) -> bool {
    let env = |name: &str| if name == "A" { a } else { b }.map(str::to_owned);
    let mut own = entry.clone();
    own["transport"] = if entry["url"].is_string() { "http" } else { "stdio" }.into();
    let own = json!({ "servers": { "x": own } }).to_string();
    let foreign = json!({ "mcpServers": { "x": entry } }).to_string().replace("${env:", "${");
    let all = [own, foreign].map(|text| {
        let read = |env| {
            let (file, workspace_root) = (Path::new("mcp.json"), Path::new(ROOT));
            let context = LoadContext { file, workspace_root, env };
            parse(text.as_bytes(), &context).unwrap()
        };
        let Entry::Server(used) = read(Env::Values(&env)).entries.remove(0) else { return false };
        let written = read(Env::AsWritten);
        let shown = shown(&written.entries[0], &written.warnings, &FailedStarts::default());
        let fill = |text: &Value| fill(&text.as_str().unwrap().replace('"', ""), &env);
        match &used.target {
            Target::Http(http) => assert_eq!(fill(&shown["starts"]), http.url, "{shown}"),
            Target::Stdio(stdio) => {
                let folder = shown["folder"].as_str().map(|_| fill(&shown["folder"]));
                let folder = folder.map(|folder| Path::new(ROOT).join(folder));
                let folder = folder.filter(|folder| folder != Path::new(ROOT));
                let wanted = stdio.working_dir.clone();
                assert_eq!(folder, wanted.filter(|wanted| wanted != Path::new(ROOT)), "{shown}");
                let starts = fill(&shown["starts"]);
                let (command, arg) = starts.split_once(' ').unwrap();
                assert_eq!(arg, stdio.args[0], "{shown}");
                let from = |folder: &Path| folder.join(command) == Path::new(&stdio.command);
                let folder = folder.unwrap_or_else(|| ROOT.into());
                let is_it = command == stdio.command
                    || command.contains('/') && (from(&folder) || from(Path::new(ROOT)));
                assert!(is_it, "{} for {shown}", stdio.command);
                let preload = fill(&shown["environment"]["LD_PRELOAD"]);
                assert_eq!(preload, stdio.env["LD_PRELOAD"].expose(), "{shown}");
            }
        }
        true
    });
    assert_eq!(all[0], all[1], "{entry}");
    all[0]
}

/// A shown text with the values of its placeholders.
fn fill(text: &str, env: &dyn Fn(&str) -> Option<String>) -> String {
    let Some((before, rest)) = text.split_once("${") else { return text.to_owned() };
    if let Some(before) = before.strip_suffix('$') {
        return format!("{before}${{{}", fill(rest, env));
    }
    let (inside, after) = rest.split_once('}').unwrap();
    let inside = inside.strip_prefix("env:").unwrap();
    let (name, default) = inside.split_once(":-").map_or((inside, None), |(n, d)| (n, Some(d)));
    let value = env(name).filter(|value| default.is_none() || !value.is_empty());
    let value = value.or(default.map(str::to_owned)).unwrap();
    format!("{before}{value}{}", fill(after, env))
}
