//! Commands of `narthex mcp add` that are written without the `--` in front of the program.
//!
//! A flag of narthex behind the first word of a program can be meant for either, and is not
//! guessed: a key that is meant for the environment would become an argument, which all users see.

use std::{ffi::OsString, path::Path};

use clap::{
    Arg, ArgMatches, Command,
    error::{ContextKind, ErrorKind},
};
use narthex_client::cli::{Doubtful, is_program};

/// The separator between the flags of narthex and a program with its own.
const DASHES: &str = "--";
/// The flags of a variable, which programs that start containers have with the same meaning.
const ENV: [&str; 2] = ["-e", "--env"];
/// Programs that start containers.
const CONTAINERS: [&str; 2] = ["docker", "podman"];

/// A command line that was read.
pub(super) struct Read {
    pub(super) matches: ArgMatches,
    /// Flags behind a program without `--` that narthex has, too.
    pub(super) doubtful: Option<Doubtful>,
}

/// Reads a command line. One of `mcp add` with a program is read as if it had the `--` that is
/// missing in front of the program, whether it is refused without or not.
///
/// # Errors
/// The refusal, if another fault is the reason.
pub(super) fn read(command: &Command, arguments: &[OsString]) -> Result<Read, clap::Error> {
    let line = first(arguments).map(|first| Line { command, arguments, first });
    let with_dashes = || line.as_ref().and_then(Line::with_dashes);
    match matches(command, arguments) {
        Ok(matches) if !has_program(&matches) => Ok(Read { matches, doubtful: None }),
        Ok(matches) => Ok(with_dashes().unwrap_or(Read { matches, doubtful: None })),
        Err(shown) if !shown.use_stderr() => Err(shown),
        Err(mut refusal) => with_dashes().ok_or_else(|| {
            if line.is_some() && refusal.kind() == ErrorKind::UnknownArgument {
                // It would be to put `--` in front of one flag, which is hardly ever right here.
                refusal.remove(ContextKind::Suggested);
            }
            refusal
        }),
    }
}

fn matches(command: &Command, arguments: &[OsString]) -> Result<ArgMatches, clap::Error> {
    command.clone().try_get_matches_from(arguments)
}

/// The place of the first word of `mcp add`; `None` for other commands.
fn first(arguments: &[OsString]) -> Option<usize> {
    let after = |from: usize, word: &str| {
        arguments.iter().skip(from).position(|one| one == word).map(|at| from + at + 1)
    };
    after(after(0, "mcp")?, "add")
}

/// The part of a command line that is about `mcp add`.
fn added(matches: &ArgMatches) -> Option<&ArgMatches> {
    matches.subcommand_matches("mcp")?.subcommand_matches("add")
}

/// True for `mcp add` with a program in front of all `--`.
fn has_program(matches: &ArgMatches) -> bool {
    let described = added(matches).and_then(|add| add.get_one::<String>("described"));
    described.is_some_and(|word| is_program(word))
}

/// A command line of `mcp add`.
struct Line<'a> {
    command: &'a Command,
    arguments: &'a [OsString],
    /// The place of its first word.
    first: usize,
}

/// A flag of narthex among the words of a program.
struct Own {
    /// The flag alone: its value may be a secret.
    flag: String,
    /// True if the next word is its value.
    takes_next: bool,
}

impl Line<'_> {
    /// The command line with the `--` that is missing in front of its program.
    fn with_dashes(&self) -> Option<Read> {
        if self.arguments.iter().any(|word| word == DASHES) {
            return None;
        }
        (self.first + 1..self.arguments.len()).find_map(|place| self.with_dashes_at(place))
    }

    /// The command line with `--` at this place, if a program begins there.
    fn with_dashes_at(&self, place: usize) -> Option<Read> {
        let mut arguments = self.arguments.to_vec();
        arguments.insert(place, DASHES.into());
        let matches = matches(self.command, &arguments).ok()?;
        let add = added(&matches)?;
        let words: Vec<_> = add.get_many::<String>("command")?.cloned().collect();
        if words.first()?.starts_with('-') || add.contains_id("described") {
            return None;
        }
        let doubtful = self.doubtful(place, &words);
        Some(Read { matches, doubtful })
    }

    /// The flags of narthex behind the first word of the program that begins at this place.
    fn doubtful(&self, place: usize, words: &[String]) -> Option<Doubtful> {
        let (program, behind) = words.split_first()?;
        let name = Path::new(program).file_name()?;
        let is_container = CONTAINERS.iter().any(|one| name == *one);
        let (mut flag, mut moved, mut rest) = (None, Vec::new(), vec![program.clone()]);
        let mut behind = behind.iter().peekable();
        while let Some(word) = behind.next() {
            let own = self.own(word, behind.peek().copied());
            match own.filter(|own| !is_container || !ENV.contains(&own.flag.as_str())) {
                None => rest.push(word.clone()),
                Some(own) => {
                    moved.push(word.clone());
                    moved.extend(behind.next_if(|_| own.takes_next).cloned());
                    flag = flag.or(Some(own.flag));
                }
            }
        }
        let flag = flag?;
        if !self.takes(place, &moved, &rest) {
            moved.clear();
        }
        Some(Doubtful { flag, moved, rest })
    }

    /// The flag of narthex that a word is, if it is one. A short flag is one if its value is that
    /// of a variable: programs have it for much else.
    fn own(&self, word: &str, next: Option<&String>) -> Option<Own> {
        if let Some(glued) = word.strip_prefix(ENV[0]) {
            let value = glued.strip_prefix('=').unwrap_or(glued);
            let takes_next = value.is_empty();
            let value = if takes_next { next?.as_str() } else { value };
            return sets_variable(value).then(|| Own { flag: ENV[0].to_owned(), takes_next });
        }
        let long = word.strip_prefix("--")?;
        let (long, has_value) = match long.split_once('=') {
            Some((long, _)) => (long, true),
            None => (long, false),
        };
        let flag = self.flags().find(|flag| flag.get_long() == Some(long))?;
        let takes_next = !has_value && flag.get_action().takes_values();
        Some(Own { flag: format!("--{long}"), takes_next })
    }

    /// The flags of `mcp add`, and those of each command.
    fn flags(&self) -> impl Iterator<Item = &Arg> {
        let add = self.command.find_subcommand("mcp").and_then(|mcp| mcp.find_subcommand("add"));
        let common = self.command.get_arguments().filter(|one| one.is_global_set());
        add.into_iter().flat_map(Command::get_arguments).chain(common)
    }

    /// True if narthex takes these flags in front of the server's name.
    fn takes(&self, place: usize, moved: &[String], rest: &[String]) -> bool {
        let mut arguments = self.arguments[..self.first].to_vec();
        arguments.extend(moved.iter().map(OsString::from));
        arguments.extend_from_slice(&self.arguments[self.first..place]);
        arguments.push(DASHES.into());
        arguments.extend(rest.iter().map(OsString::from));
        matches(self.command, &arguments).is_ok()
    }
}

/// True for `NAME=VALUE` with the name of a variable.
fn sets_variable(word: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && name.chars().all(is_of_name)
            && !name.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use narthex_client::cli::{AddArgs, McpCommand, McpDaemonCommand};

    use super::*;
    use crate::cli;

    /// Reads the words behind `narthex`.
    fn added(line: &str) -> Result<AddArgs, clap::Error> {
        let words = std::iter::once("narthex").chain(line.split_whitespace());
        let (line, _) = cli::read(words.map(OsString::from))?;
        match line.command {
            cli::Command::Mcp(McpCommand::Daemon(McpDaemonCommand::Add(args))) => Ok(*args),
            other => panic!("{other:?}"),
        }
    }

    /// E139: a program with flags of its own needs no `--`.
    #[test]
    fn e139_a_program_without_dashes_is_taken_with_its_flags() {
        for (line, program) in [
            ("mcp add mem npx -y a@1", "npx -y a@1"),
            ("mcp add mem python server.py --port 3", "python server.py --port 3"),
            ("--json mcp add --env A=b mem --replace npx -y a", "npx -y a"),
            (
                "mcp add mem -e A=b docker run -i --rm -e TOKEN image",
                "docker run -i --rm -e TOKEN image",
            ),
            ("mcp --data d add mem --cwd . npx -y a", "npx -y a"),
            ("mcp add mem -- npx -y --env a", "npx -y --env a"),
        ] {
            let args = added(line).unwrap();
            assert_eq!((&*args.name, &*args.command.join(" ")), ("mem", program), "{line}");
            assert_eq!((args.described, args.doubtful), (None, None), "{line}");
        }
        let args = added("mcp add docs http://a.example/mcp --header A=b --replace").unwrap();
        assert_eq!(args.described.as_deref(), Some("http://a.example/mcp"));
    }

    /// E139: a flag of narthex behind a program is in doubt, also if the line is read without `--`.
    #[test]
    fn e139_a_flag_of_narthex_behind_a_program_is_in_doubt() {
        for (line, flag, moved, rest) in [
            ("npx -y x --env A=b", "--env", "--env A=b", "npx -y x"),
            ("uvx x --env=A", "--env", "--env=A", "uvx x"),
            ("npx -y x@1.0.0 -e API_KEY=s y", "-e", "-e API_KEY=s", "npx -y x@1.0.0 y"),
            ("npx -y x -eA=b", "-e", "-eA=b", "npx -y x"),
            ("my-server -e A=b", "-e", "-e A=b", "my-server"),
            ("my-server --data /srv/x", "--data", "--data /srv/x", "my-server"),
            ("my-server --quiet", "--quiet", "--quiet", "my-server"),
            ("my-server --cwd d --replace", "--cwd", "--cwd d --replace", "my-server"),
            (
                "docker run --rm -e A=b i --replace",
                "--replace",
                "--replace",
                "docker run --rm -e A=b i",
            ),
            // These cannot be meant for narthex, so there is no command with them in front.
            ("npx -y x --env", "--env", "", "npx -y x"),
            ("npx -y x --url http://a.example", "--url", "", "npx -y x"),
        ] {
            let doubtful = added(&format!("mcp add mem {line}")).unwrap().doubtful.unwrap();
            assert_eq!(doubtful.flag, flag, "{line}");
            assert_eq!(doubtful.moved.join(" "), moved, "{line}");
            assert_eq!(doubtful.rest.join(" "), rest, "{line}");
        }
        for line in [
            "docker run -i --rm -e TOKEN=a image",
            "/usr/bin/podman run --env A=b image",
            "node -e require('x')",
            "npx -y x -e",
            "my-server --port 3",
        ] {
            let args = added(&format!("mcp add mem {line}")).unwrap();
            assert_eq!((&*args.command.join(" "), args.doubtful), (line, None));
        }
        for line in ["mem --replace my-server", "-e A=b --cwd d mem my-server"] {
            let args = added(&format!("mcp add {line}")).unwrap();
            assert_eq!((&*args.command.join(" "), args.doubtful), ("my-server", None));
        }
        for line in ["mcp add mem - --replace", "mcp add mem {} --quiet"] {
            assert_eq!(added(line).unwrap().doubtful, None, "{line}");
        }
    }

    /// E139: no tip suggests to put `--` in front of a single flag.
    #[test]
    fn e139_another_unknown_flag_is_refused_without_a_tip() {
        for line in ["mcp add --nosuch mem", "mcp add mem --nosuch x", "mcp add mem -z -- npx"] {
            let text = added(line).unwrap_err().to_string();
            assert!(text.contains("unexpected argument") && !text.contains("tip:"), "{text}");
        }
        let text = added("mcp add mem --replce -- npx").unwrap_err().to_string();
        assert!(text.contains("--replace"), "{text}");
    }
}
