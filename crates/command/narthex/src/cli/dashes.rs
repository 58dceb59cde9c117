//! Commands of `narthex mcp add` that are written without the `--` in front of the program.

use std::ffi::OsString;

use clap::{
    ArgMatches, Command,
    error::{ContextKind, ErrorKind},
};

/// The separator between the flags of narthex and a program with its own.
const DASHES: &str = "--";

/// A command line that was read.
pub(super) struct Read {
    pub(super) matches: ArgMatches,
    /// The first word of a program without `--` that is a flag of `mcp add`, too.
    pub(super) doubtful: Option<String>,
}

/// Reads a command line. If it is refused, it is read again with the `--` that is missing in front
/// of the program of `mcp add`.
///
/// # Errors
/// The refusal, if another fault is the reason.
pub(super) fn read(command: &Command, arguments: &[OsString]) -> Result<Read, clap::Error> {
    let mut refusal = match matches(command, arguments) {
        Ok(matches) => return Ok(Read { matches, doubtful: None }),
        Err(refusal) => refusal,
    };
    let is_unknown = refusal.kind() == ErrorKind::UnknownArgument;
    let Some(first) = first(arguments).filter(|_| is_unknown) else { return Err(refusal) };
    let mut places = first + 1..arguments.len();
    if !arguments.iter().any(|word| word == DASHES)
        && let Some(read) = places.find_map(|place| with_dashes_at(place, command, arguments))
    {
        return Ok(read);
    }
    // It would be to put `--` in front of one flag, which is hardly ever right here.
    refusal.remove(ContextKind::Suggested);
    Err(refusal)
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

/// The command line with `--` at this place, if a program begins there.
fn with_dashes_at(place: usize, command: &Command, arguments: &[OsString]) -> Option<Read> {
    let mut arguments = arguments.to_vec();
    arguments.insert(place, DASHES.into());
    let matches = matches(command, &arguments).ok()?;
    let add = matches.subcommand_matches("mcp")?.subcommand_matches("add")?;
    let mut words = add.get_many::<String>("command")?;
    if words.next()?.starts_with('-') || add.contains_id("described") {
        return None;
    }
    let doubtful = words.find(|word| is_own(word, command)).cloned();
    Some(Read { matches, doubtful })
}

/// True for a flag that `mcp add` has itself.
fn is_own(word: &str, command: &Command) -> bool {
    let Some(flag) = word.strip_prefix("--").and_then(|rest| rest.split('=').next()) else {
        return false;
    };
    let add = command.find_subcommand("mcp").and_then(|mcp| mcp.find_subcommand("add"));
    add.is_some_and(|add| add.get_arguments().any(|one| one.get_long() == Some(flag)))
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
            cli::Command::Mcp(McpCommand::Daemon(McpDaemonCommand::Add(args))) => Ok(args),
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
        for line in ["mcp add a npx -y x --env A=b", "mcp add a uvx x --env=A"] {
            let doubtful = added(line).unwrap().doubtful.unwrap();
            assert!(doubtful.starts_with("--env"), "{doubtful}");
        }
        let args = added("mcp add docs http://a.example/mcp --header A=b --replace").unwrap();
        assert_eq!(args.described.as_deref(), Some("http://a.example/mcp"));
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
