//! The description of a server on the command line of `narthex mcp add`, and the entry from it.

use std::io::{Read, stdin};

use narthex_model::{command::narthex, json::without_comments};
use serde_json::{Map, Value, json};

use crate::{Failure, cli::AddArgs};

/// More than the daemon takes.
const ENTRY_MAX: u64 = 2 * 1024 * 1024;

/// A server as a command line describes it.
#[derive(Debug, PartialEq, Eq)]
enum Described<'a> {
    /// An entry as JSON; `-` reads it from standard input.
    Entry(&'a str),
    /// An address of a server over HTTP.
    Address(&'a str),
    /// A program and its arguments.
    Program(Vec<&'a str>),
}

/// The entry's text.
///
/// # Errors
/// When the command line describes no server, or has flags that do not fit the description.
pub(super) fn entry(args: &AddArgs) -> Result<String, Failure> {
    let described = described(args)?;
    fits(args, &described)?;
    match described {
        Described::Entry("-") => {
            let mut text = String::new();
            stdin().take(ENTRY_MAX).read_to_string(&mut text)?;
            // The daemon takes JSON alone.
            let text = String::from_utf8_lossy(&without_comments(text.as_bytes())).into_owned();
            one_entry(text)
        }
        Described::Entry(text) => one_entry(text.to_owned()),
        Described::Address(url) => {
            let transport = if args.sse { "sse" } else { "http" };
            let mut entry = json!({ "transport": transport, "url": url });
            if !args.header.is_empty() {
                entry["headers"] = pairs("--header", &args.header)?;
            }
            Ok(entry.to_string())
        }
        Described::Program(words) => {
            let mut entry =
                json!({ "transport": "stdio", "command": words[0], "args": words[1..] });
            if !args.env.is_empty() {
                entry["env"] = pairs("--env", &args.env)?;
            }
            if let Some(folder) = &args.cwd {
                entry["cwd"] = json!(folder);
            }
            Ok(entry.to_string())
        }
    }
}

/// Refuses a whole file of servers in place of one entry.
fn one_entry(text: String) -> Result<String, Failure> {
    let read = serde_json::from_str::<Map<String, Value>>(&text).unwrap_or_default();
    let whole = ["mcpServers", "servers"].into_iter().find(|key| read.contains_key(*key));
    match whole {
        None => Ok(text),
        Some(key) => Err(Failure::usage(format!(
            "the entry is a whole file with `{key}`; give the object of one of its servers alone, \
             with its `transport`"
        ))),
    }
}

/// Reads the description. A word that is neither an entry nor an address is a program.
fn described(args: &AddArgs) -> Result<Described<'_>, Failure> {
    if let Some(url) = &args.url {
        return Ok(Described::Address(url));
    }
    let before = args.described.as_deref();
    let words: Vec<_> = before.into_iter().chain(args.command.iter().map(String::as_str)).collect();
    let add = narthex("mcp add {}", &[&args.name]);
    match (words.as_slice(), before) {
        ([], _) => Err(Failure::usage(nothing(&args.name))),
        (["-"], _) => Ok(Described::Entry("-")),
        ([entry], _) if entry.trim_start().starts_with('{') => Ok(Described::Entry(entry)),
        ([url], _) if is_address(url) => Ok(Described::Address(url)),
        ([url, ..], _) if is_address(url) => Err(Failure::usage(format!(
            "`{url}` is an address and starts no program, so nothing can follow it; write `{}`",
            add.option("--url", url)
        ))),
        ([_, ..], Some(before)) if !args.command.is_empty() => Err(Failure::usage(format!(
            "`{before}` is in front of `--`, and the whole command belongs behind it: `{}`",
            add.passing_on(&words)
        ))),
        ([program, ..], _) => match &args.doubtful {
            None => Ok(Described::Program(words)),
            Some(flag) => Err(Failure::usage(format!(
                "`{flag}` can be meant for narthex or for `{program}`; write it before `--` for \
                 narthex, or behind it for the program: `{}`",
                add.passing_on(&words)
            ))),
        },
    }
}

/// The error of a command line without a description.
fn nothing(name: &str) -> String {
    if name.contains('/') {
        let add = narthex("add {}", &[&name]);
        return format!(
            "`{name}` alone describes no server; if it is a name of a registry, add it with `{add}`"
        );
    }
    let command = narthex("mcp add {} -- COMMAND", &[&name]);
    let url = narthex("mcp add {} --url URL", &[&name]);
    let entry = narthex("mcp add {} -", &[&name]);
    format!(
        "the command line does not describe the server `{name}`: write `{command}` for a program, \
         `{url}` for an address, or `{entry}` to read its entry as JSON from standard input"
    )
}

/// True for the address of a server over HTTP.
fn is_address(word: &str) -> bool {
    let has = |scheme: &str| {
        word.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    has("http://") || has("https://")
}

/// Refuses flags that do not belong to this kind of server.
fn fits(args: &AddArgs, described: &Described<'_>) -> Result<(), Failure> {
    let (fitting, why): (&[&str], _) = match described {
        Described::Entry(_) => {
            (&[], "an entry as JSON has all of it in its own members, such as `env` and `headers`")
        }
        Described::Address(_) => {
            (&["--header", "--sse"], "a server at an address has no program of this machine")
        }
        Described::Program(_) => (&["--env", "--cwd"], "a program has no address"),
    };
    let given = [
        ("--header", !args.header.is_empty()),
        ("--sse", args.sse),
        ("--env", !args.env.is_empty()),
        ("--cwd", args.cwd.is_some()),
    ];
    match given.into_iter().find(|(flag, is_given)| *is_given && !fitting.contains(flag)) {
        Some((flag, _)) => Err(Failure::usage(format!("{flag} cannot be used here: {why}"))),
        None => Ok(()),
    }
}

/// The members that the values of a flag name. A header may also be written `NAME: VALUE`.
fn pairs(flag: &str, words: &[String]) -> Result<Value, Failure> {
    let separators: &[char] = if flag == "--header" { &['=', ':'] } else { &['='] };
    let mut members = Map::new();
    for word in words {
        // The value may be a secret, so it is not repeated.
        let Some((name, value)) =
            word.split_once(separators).filter(|(name, _)| !name.trim().is_empty())
        else {
            return Err(Failure::usage(format!("{flag} needs NAME=VALUE")));
        };
        let (name, value) = match flag {
            "--header" => (name.trim(), value.trim_start()),
            _ => (name, value),
        };
        if members.insert(name.to_owned(), json!(value)).is_some() {
            return Err(Failure::usage(format!("{flag} {name} is given twice")));
        }
    }
    Ok(members.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(described: Option<&str>, command: &[&str]) -> AddArgs {
        AddArgs {
            name: "docs".to_owned(),
            described: described.map(str::to_owned),
            url: None,
            sse: false,
            header: Vec::new(),
            env: Vec::new(),
            cwd: None,
            replace: false,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            doubtful: None,
        }
    }

    fn stored(args: &AddArgs) -> Value {
        serde_json::from_str(&entry(args).unwrap()).unwrap()
    }

    /// E139: a word alone is an address, an entry or a program.
    #[test]
    fn e139_a_word_is_an_address_an_entry_or_a_program() {
        for url in ["http://a.example/mcp", "HTTPS://a.example"] {
            let expected = json!({ "transport": "http", "url": url });
            assert_eq!(stored(&args(Some(url), &[])), expected);
            assert_eq!(stored(&args(None, &[url])), expected);
            let with_sse = AddArgs { sse: true, ..args(Some(url), &[]) };
            assert_eq!(stored(&with_sse)["transport"], "sse");
        }
        assert_eq!(entry(&args(Some(" {\"a\": 1}"), &[])).unwrap(), " {\"a\": 1}");
        let program = json!({ "transport": "stdio", "command": "docs", "args": [] });
        assert_eq!(stored(&args(Some("docs"), &[])), program);
        let with_env = AddArgs { env: vec!["A=b=c".to_owned()], ..args(Some("docs"), &[]) };
        assert_eq!(stored(&with_env)["env"], json!({ "A": "b=c" }));
    }

    /// E139: a header is written as in HTTP, or with `=`.
    #[test]
    fn e139_headers_have_both_spellings() {
        let header = ["X-A=b: c", "Authorization: Bearer ${env:A}=="].map(str::to_owned).to_vec();
        let args = AddArgs { header, ..args(Some("http://a.example"), &[]) };
        let expected = json!({ "X-A": "b: c", "Authorization": "Bearer ${env:A}==" });
        assert_eq!(stored(&args)["headers"], expected);
    }

    /// E139: a refused command line names the whole command that is taken.
    #[test]
    fn e139_a_refused_description_names_the_command_that_is_taken() {
        let doubtful = AddArgs {
            doubtful: Some("--env".to_owned()),
            ..args(None, &["npx", "-y", "it's", "--env", "A=b"])
        };
        let with_cwd = AddArgs { cwd: Some(".".to_owned()), ..args(Some("{}"), &[]) };
        let with_header = AddArgs { header: vec!["A=b".to_owned()], ..args(None, &["npx"]) };
        let named = AddArgs { name: "io.github.ada/weather".to_owned(), ..args(None, &[]) };
        for (args, told) in [
            (args(None, &["http://a/b?c", "x"]), "`narthex mcp add docs --url 'http://a/b?c'`"),
            (args(Some("npx"), &["-y", "a"]), "`narthex mcp add docs -- npx -y a`"),
            (doubtful, "`narthex mcp add docs -- npx -y \"it's\" --env A=b`"),
            (args(None, &[]), "`narthex mcp add docs -- COMMAND`"),
            (named, "`narthex add io.github.ada/weather`"),
            (args(Some("{\"mcpServers\": {}}"), &[]), "a whole file with `mcpServers`"),
            (with_cwd, "--cwd cannot be used here"),
            (with_header, "--header cannot be used here: a program has no address"),
        ] {
            let message = entry(&args).unwrap_err().message;
            assert!(message.contains(told), "no {told} in {message}");
        }
    }
}
