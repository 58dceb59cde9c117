//! The description of a server on the command line of `narthex mcp add`, and the entry from it.

use std::{
    io::{Read, stdin},
    path::Path,
};

use narthex_model::{
    command::{CommandLine, narthex},
    json::without_comments,
};
use serde_json::{Map, Value, json};

use crate::{
    Failure,
    cli::{AddArgs, Doubtful, is_address},
};

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
            let folder = args.cwd.as_deref().map(|folder| whole(folder, None)).transpose()?;
            let program = match words[0].contains('/') {
                true => whole(words[0], folder.as_deref())?,
                false => words[0].to_owned(),
            };
            let mut entry = json!({ "transport": "stdio", "command": program, "args": words[1..] });
            if !args.env.is_empty() {
                entry["env"] = pairs("--env", &args.env)?;
            }
            if let Some(folder) = folder {
                entry["cwd"] = json!(folder);
            }
            Ok(entry.to_string())
        }
    }
}

/// The whole path of a path that is relative to a folder, or else to the current one: the daemon
/// runs in another. A path that begins with a placeholder stays.
fn whole(path: &str, folder: Option<&str>) -> Result<String, Failure> {
    if path.starts_with("${") {
        return Ok(path.to_owned());
    }
    let joined = Path::new(folder.unwrap_or_default()).join(path);
    if folder.is_some_and(|folder| folder.starts_with("${")) {
        return Ok(joined.display().to_string());
    }
    let whole = std::path::absolute(joined)?;
    whole.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::usage(format!(
            "the path {} is not valid UTF-8, and an entry cannot hold it; rename it",
            whole.display()
        ))
    })
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
    match (words.as_slice(), before) {
        ([], _) => Err(Failure::usage(nothing(&args.name))),
        (["-"], _) => Ok(Described::Entry("-")),
        ([entry], _) if entry.trim_start().starts_with('{') => Ok(Described::Entry(entry)),
        ([url], _) if is_address(url) => Ok(Described::Address(url)),
        ([url, ..], _) if is_address(url) => {
            fits(args, &Described::Address(url))?;
            let moved = args.doubtful.as_ref().map(|doubtful| doubtful.moved.as_slice());
            Err(Failure::usage(format!(
                "`{url}` is an address and starts no program, so nothing can follow it; write `{}`",
                add(args, moved.unwrap_or_default()).option("--url", url)
            )))
        }
        ([_, ..], Some(before)) if !args.command.is_empty() => Err(Failure::usage(format!(
            "`{before}` is in front of `--`, and the whole command belongs behind it: `{}`",
            add(args, &[]).passing_on(&words)
        ))),
        ([program, ..], _) => match &args.doubtful {
            None => Ok(Described::Program(words)),
            Some(doubtful) => Err(Failure::usage(in_doubt(args, program, &words, doubtful))),
        },
    }
}

/// The command with the flags that were typed for narthex, and before them `moved`.
fn add(args: &AddArgs, moved: &[String]) -> CommandLine {
    // The arguments follow, so the words here are no whole command.
    let start = "mcp add";
    let mut add = narthex(start, &[]).words(moved).words([&args.name]);
    let switches = [("--sse", args.sse), ("--replace", args.replace)];
    add = add.words(switches.into_iter().filter(|(_, is_given)| *is_given).map(|(flag, _)| flag));
    let headers = args.header.iter().map(|value| ("--header", value));
    let variables = args.env.iter().map(|value| ("--env", value));
    let folder = args.cwd.iter().map(|value| ("--cwd", value));
    headers.chain(variables).chain(folder).fold(add, |add, (flag, value)| add.option(flag, value))
}

/// The error of flags behind a program that can be meant for it or for narthex, with the command
/// for each.
fn in_doubt(args: &AddArgs, program: &str, words: &[&str], doubtful: &Doubtful) -> String {
    let Doubtful { flag, moved, rest } = doubtful;
    let of_program = add(args, &[]).passing_on(words);
    let is_address_flag = |word: &String| {
        ["--header", "--sse"].iter().any(|flag| word.split('=').next() == Some(*flag))
    };
    if moved.is_empty() || moved.iter().any(is_address_flag) {
        return format!(
            "`{flag}` is a flag of narthex, too; if it is meant for `{program}`, write \
             `{of_program}`"
        );
    }
    format!(
        "`{flag}` can be meant for narthex or for `{program}`; write `{of_program}` if it is for \
         `{program}`, or `{}` if it is for narthex",
        add(args, moved).passing_on(rest)
    )
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
            command: words(command),
            doubtful: None,
        }
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
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

    /// E139: the daemon runs in another folder than the command.
    #[test]
    fn e139_paths_of_a_program_are_stored_whole() {
        let here = std::env::current_dir().unwrap();
        let in_here = |path: &str| json!(here.join(path));
        assert_eq!(stored(&args(Some("./srv"), &[]))["command"], in_here("srv"));
        assert_eq!(stored(&args(None, &["bin/srv", "./x"]))["command"], in_here("bin/srv"));
        assert_eq!(stored(&args(None, &["bin/srv", "./x"]))["args"], json!(["./x"]));
        for (folder, program, expected) in [
            (".", "srv", (json!(here), json!("srv"))),
            ("sub", "./srv", (in_here("sub"), in_here("sub/srv"))),
            ("/srv", "/bin/x", (json!("/srv"), json!("/bin/x"))),
            ("${env:A}", "./x", (json!("${env:A}"), json!("${env:A}/./x"))),
            ("/srv", "${env:A}/x", (json!("/srv"), json!("${env:A}/x"))),
        ] {
            let entry = stored(&AddArgs { cwd: Some(folder.to_owned()), ..args(None, &[program]) });
            assert_eq!((&entry["cwd"], &entry["command"]), (&expected.0, &expected.1));
        }
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
        let doubtful = || AddArgs {
            doubtful: Some(Doubtful {
                flag: "--env".to_owned(),
                moved: words(&["--env", "A=b"]),
                rest: words(&["npx", "-y", "it's"]),
            }),
            env: words(&["C=d e"]),
            cwd: Some("/tmp".to_owned()),
            ..args(None, &["npx", "-y", "it's", "--env", "A=b"])
        };
        let of_program = AddArgs {
            doubtful: Some(Doubtful {
                flag: "--header".to_owned(),
                moved: words(&["--header", "A=b"]),
                rest: words(&["npx"]),
            }),
            ..args(None, &["npx", "--header", "A=b"])
        };
        let in_front = AddArgs {
            env: words(&["A=b"]),
            cwd: Some("/tmp".to_owned()),
            replace: true,
            ..args(Some("npx"), &["-y", "a"])
        };
        let of_url =
            AddArgs { header: words(&["A=b"]), sse: true, ..args(None, &["http://a", "x"]) };
        let env_of_url = AddArgs { env: words(&["A=b"]), ..args(None, &["http://a", "x"]) };
        let with_cwd = AddArgs { cwd: Some(".".to_owned()), ..args(Some("{}"), &[]) };
        let with_header = AddArgs { header: vec!["A=b".to_owned()], ..args(None, &["npx"]) };
        let named = AddArgs { name: "io.github.ada/weather".to_owned(), ..args(None, &[]) };
        for (args, told) in [
            (args(None, &["http://a/b?c", "x"]), "`narthex mcp add docs --url 'http://a/b?c'`"),
            (args(Some("npx"), &["-y", "a"]), "`narthex mcp add docs -- npx -y a`"),
            (
                doubtful(),
                "`narthex mcp add docs --env 'C=d e' --cwd /tmp -- npx -y \"it's\" --env A=b`",
            ),
            (
                doubtful(),
                "`narthex mcp add --env A=b docs --env 'C=d e' --cwd /tmp -- npx -y \"it's\"`",
            ),
            (
                of_program,
                "if it is meant for `npx`, write `narthex mcp add docs -- npx --header A=b`",
            ),
            (in_front, "`narthex mcp add docs --replace --env A=b --cwd /tmp -- npx -y a`"),
            (of_url, "`narthex mcp add docs --sse --header A=b --url http://a`"),
            (env_of_url, "--env cannot be used here"),
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
