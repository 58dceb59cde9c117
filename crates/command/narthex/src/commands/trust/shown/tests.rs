//! Shown texts: what they hide, and that they leave out nothing that a daemon would start.

use std::path::Path;

use narthex_registry::config::{Env, LoadContext, parse};

use super::*;

const ROOT: &str = "/repo";

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
    let texts = ["a${env:A:-b}${env:B}", "$x", "${env:A}"];
    assert_eq!(variables(texts), BTreeSet::from(["A", "B"]));
}

/// D27: the host is the one that the parser of addresses finds, whatever the spelling is.
#[test]
fn d27_the_host_of_an_address_is_shown() {
    for (written, shown, alone) in [
        ("http:///127.0.0.1:18765/a1", "http://127.0.0.1:18765/a1", "http://127.0.0.1:18765"),
        ("https:\\\\evil.example\\a", "https://evil.example/a", "https://evil.example"),
        ("https://me:pw@a.example:8443", "https://a.example:8443/", "https://a.example:8443"),
        ("https://me@a.example/${env:P}", "https://a.example/${env:P}", "https://a.example"),
    ] {
        assert_eq!(address(written), shown);
        assert_eq!(host_alone(written), format!("{alone}/[hidden]"));
    }
    for odd in ["https://\u{435}.example/a", "https://\u{435}.example/${env:P}"] {
        assert!(address(odd).starts_with("https://xn--"), "{}", address(odd));
        assert!(host_alone(odd).starts_with("https://xn--"), "{}", host_alone(odd));
    }
    for open in ["http:///${env:H}/x", "https://a${env:H}/x", "${env:S}://a.example/x"] {
        assert_eq!((address(open), host_alone(open)), (open.to_owned(), open.to_owned()));
    }
    assert_eq!(address("https://\u{435}${env:H}/x"), "\"https://\\u{435}${env:H}/x\"");
}

/// The text about the authentication of an entry, and the variables that are sent.
fn signed_in(auth: &Value) -> (String, Vec<String>) {
    let entry = json!({ "transport": "http", "url": "https://s.example/mcp", "auth": auth });
    let text = json!({ "servers": { "x": entry } }).to_string();
    let (file, workspace_root) = (Path::new("mcp.json"), Path::new(ROOT));
    let context = LoadContext { file, workspace_root, env: Env::AsWritten };
    let read = parse(text.as_bytes(), &context).unwrap();
    let shown = shown(&read.entries[0], &FailedStarts::default());
    let variables = shown["variables"].as_array().unwrap().iter();
    let variables = variables.map(|name| name.as_str().unwrap().to_owned()).collect();
    (shown["auth"].as_str().unwrap().to_owned(), variables)
}

/// D27: each receiver of a credential of a sign-in is shown, and no secret is.
#[test]
fn d27_the_receivers_of_credentials_are_shown() {
    for (auth, wanted) in [
        (
            json!({ "mode": "clientCredentials", "clientId": "${env:ID}",
                    "clientSecret": "${env:SECRET}" }),
            "clientCredentials at the authorization server that the server names",
        ),
        (
            json!({ "mode": "clientCredentials", "clientId": "${env:ID}",
                    "privateKey": "${env:SECRET}", "tokenUrl": "https://id.example/t?key=hidden",
                    "authorizationServer": "https://id.example", "audience": "aud",
                    "scopes": ["a"], "resource": "https://r.example" }),
            "clientCredentials at https://id.example/t?key=…, of https://id.example/, with a \
             private key, with the scopes a, for the audience aud, for the resource \
             https://r.example/",
        ),
        (
            json!({ "mode": "authorizationCode", "authorizationServer": "https://as.example/x",
                    "client": { "clientId": "${env:ID}", "clientSecret": "${env:SECRET}" },
                    "redirectUri": "https://evil.example/cb", "resource": "omit",
                    "registration": "preregistered", "pkce": "assume", "legacy": true }),
            "authorizationCode at the authorization server https://as.example/x, as the client \
             ${env:ID}, back to https://evil.example/cb, for any resource, registration \
             preregistered, pkce assume, legacy",
        ),
        (
            json!({ "mode": "authorizationCode", "scopes": ["${env:ID}"],
                    "tokens": { "accessToken": "${env:SECRET}" } }),
            "authorizationCode at the authorization server that the server names, with the scopes \
             ${env:ID}, with tokens of this file",
        ),
    ] {
        let (shown, variables) = signed_in(&auth);
        assert_eq!(shown, wanted);
        assert_eq!(variables, ["ID", "SECRET"], "{auth}");
    }
}

/// D27: neither a word that begins as keys do nor another entry hides what a program runs.
#[test]
fn d27_no_entry_hides_a_word_of_another_one() {
    let run = |args: &[&str]| {
        json!({ "transport": "stdio", "command": "npx", "args": args,
        "env": { "MODE": "plain0123456789abc" } })
    };
    let servers = json!({
        "evil": run(&["-y", "package0123456789x@1.0.0"]),
        "not-evil": run(&["-y", "sk-0123456789@1.0.0", "--token", "hidden-1"]),
    });
    let text = json!({ "servers": servers }).to_string();
    let (file, workspace_root) = (Path::new("mcp.json"), Path::new(ROOT));
    let context = LoadContext { file, workspace_root, env: Env::AsWritten };
    let read = parse(text.as_bytes(), &context).unwrap();
    let all = read.entries.iter().map(|entry| shown(entry, &FailedStarts::default()));
    let all: Vec<_> = all.collect();
    let starts: BTreeSet<_> = all.iter().map(|one| one["starts"].as_str().unwrap()).collect();
    let wanted = ["npx -y package0123456789x@1.0.0", "npx -y sk-0123456789@1.0.0 --token [hidden]"];
    assert_eq!(starts, BTreeSet::from(wanted));
    assert!(all.iter().all(|one| one["environment"]["MODE"] == "plain0123456789abc"), "{all:?}");
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
        "~/run",
        "ghp_0123456789aBcDeFgHiJ",
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
        "http:///a.example/mcp",
        "http:///${env:A:-evil.example}/mcp",
        "https://\u{435}.example/mcp",
        "https://\u{435}.example/${env:A}",
    ];
    let mut entries = Vec::new();
    let args = ["${env:B:-first}", "package0123456789x@1.0.0", "ghp_0123456789aBcDeFgHiJ"];
    let variables =
        json!({ "LD_PRELOAD": "${env:A:-./evil.so}", "NODE_OPTIONS": "evil0123456789abcdef" });
    for command in commands {
        entries.extend(folders.map(
            |folder| json!({ "command": command, "args": args, "cwd": folder, "env": variables }),
        ));
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
        let shown = shown(&written.entries[0], &FailedStarts::default());
        let fill = |text: &Value| fill(&text.as_str().unwrap().replace('"', ""), &env);
        match &used.target {
            Target::Http(http) => {
                let [shown, used] = [fill(&shown["starts"]), http.url.clone()]
                    .map(|url| Url::parse(&url).unwrap().to_string());
                assert_eq!(shown, used);
            }
            Target::Stdio(stdio) => {
                let folder = shown["folder"].as_str().map(|_| fill(&shown["folder"]));
                let folder = folder.map(|folder| Path::new(ROOT).join(folder));
                let folder = folder.filter(|folder| folder != Path::new(ROOT));
                let wanted = stdio.working_dir.clone();
                assert_eq!(folder, wanted.filter(|wanted| wanted != Path::new(ROOT)), "{shown}");
                let starts = fill(&shown["starts"]);
                let (command, args) = starts.split_once(' ').unwrap();
                assert_eq!(args, stdio.args.join(" "), "{shown}");
                let from = |folder: &Path| folder.join(command) == Path::new(&stdio.command);
                let folder = folder.unwrap_or_else(|| ROOT.into());
                let is_it = command == stdio.command
                    || command.contains('/') && (from(&folder) || from(Path::new(ROOT)));
                assert!(is_it, "{} for {shown}", stdio.command);
                for (name, value) in &stdio.env {
                    assert_eq!(fill(&shown["environment"][name]), value.expose(), "{shown}");
                }
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
