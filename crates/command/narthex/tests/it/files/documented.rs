//! The examples of `docs/reference/files.md`, run by the programs that they name.

use std::{path::Path, process::Command};

use fs_err as fs;

use super::{Mount, daemon, has_fuse, place};
use crate::support::{Done, Place};

const PROGRAMS: [&str; 4] = ["bash", "dd", "jq", "python3"];

/// An example: its steps, and the output of each.
#[derive(Debug, PartialEq, Eq)]
enum Example {
    /// Lines for one shell, in order, each with its output.
    Console(Vec<(String, String)>),
    /// A program, and its output.
    Python(String, String),
}

/// The fenced blocks of these kinds. The text after a Python program is the program's output.
fn examples(document: &str) -> Vec<Example> {
    let mut found = Vec::new();
    let mut blocks = document.split("\n```");
    blocks.next();
    let fences: Vec<_> = blocks.step_by(2).filter_map(|block| block.split_once('\n')).collect();
    for (index, (kind, text)) in fences.iter().enumerate() {
        match *kind {
            "console" => found.push(Example::Console(commands(text))),
            "python" => {
                let (kind, printed) = fences[index + 1];
                assert_eq!(kind, "text", "a program of Python is followed by what it prints");
                found.push(Example::Python((*text).to_owned(), format!("{printed}\n")));
            }
            _ => {}
        }
    }
    found
}

fn commands(block: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), String::new())),
            (None, Some((_, printed))) => printed.push_str(&format!("{line}\n")),
            (None, None) => panic!("`{line}` is printed by nothing"),
        }
    }
    commands
}

fn run(place: &Place, program: &str, text: &str) -> Done {
    let mut command = Command::new(program);
    command.args(["-c", text]).current_dir(place.path("")).env("LC_ALL", "C");
    Done::from(command.output().unwrap())
}

/// Each command in the same shell, so that its descriptors and its results last.
fn run_console(place: &Place, commands: &[(String, String)]) {
    let end = "__end_of_example__";
    let script: String =
        commands.iter().map(|(command, _)| format!("{command}\necho {end}\n")).collect();
    let done = run(place, "bash", &format!("exec 2>&1\n{script}"));
    let printed: Vec<_> = done.stdout.split(&format!("{end}\n")).collect();
    for (index, (command, expected)) in commands.iter().enumerate() {
        assert_eq!(printed.get(index), Some(&expected.as_str()), "`{command}`: {done:?}");
    }
}

/// Every example of the document, at a real folder of a real daemon.
#[test]
fn the_examples_of_the_document_work() {
    if !has_fuse() {
        return;
    }
    let missing = |program: &&&str| {
        let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
        !found.unwrap().status.success()
    };
    let missing: Vec<_> = PROGRAMS.iter().filter(missing).collect();
    if !missing.is_empty() {
        eprintln!("SKIPPED: the examples of files are not run, for want of {missing:?}");
        return;
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/files.md");
    let examples = examples(&fs::read_to_string(document).unwrap());
    assert!(examples.len() >= 7, "{examples:?}");
    let place = place();
    let _daemon = daemon(&place);
    let _mount = Mount::new(&place, None);
    for example in &examples {
        match example {
            Example::Console(commands) => run_console(&place, commands),
            Example::Python(program, printed) => {
                assert_eq!(run(&place, "python3", program).succeeded().stdout, *printed);
            }
        }
    }
}

#[test]
fn examples_are_read_out_of_a_document() {
    let document = "a\n```console\n$ one\n1\n$ two\n```\nb\n```python\nprint(1)\n```\n\n\
                    ```text\n1\n```\n```sh\nx\n```\n";
    let one = ("one".to_owned(), "1\n".to_owned());
    let console = Example::Console(vec![one, ("two".to_owned(), String::new())]);
    let python = Example::Python("print(1)".to_owned(), "1\n".to_owned());
    assert_eq!(examples(document), [console, python]);
}
