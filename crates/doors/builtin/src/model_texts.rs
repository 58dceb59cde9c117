//! Checks that the texts which models read name no command and no address of operators (D28).

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use narthex_model::{BuiltInTools, for_models};

use crate::tools;

/// The crates with texts that models read: of tools, refusals, files and session events.
const SPEAKING: [&str; 8] = [
    "control-plane/executor/src",
    "data-plane/gateway/src",
    "data-plane/policy/src",
    "doors/builtin/src",
    "doors/http/src/devices",
    "doors/vfs/src",
    "doors/socket/src",
    "words/wire/src",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().is_some_and(|stem| stem == "tests" || stem == "model_texts");
        if is_test {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// D28: the descriptions and instructions of the tools name no command and no address of operators.
#[test]
fn d28_tools_and_instructions_name_nothing_of_operators() {
    let told = tools::all().iter().map(|tool| tool.definition().to_string()).collect::<Vec<_>>();
    let instructions = tools::instructions(&BuiltInTools::All);
    for text in told.iter().map(String::as_str).chain([&*instructions]) {
        assert_eq!(for_models(text), text);
        assert!(!text.contains("narthex "), "{text}");
    }
}

/// D28: the same holds for each text in these crates, such as results, refusals, and events that
/// other agents read.
#[test]
fn d28_no_text_for_models_names_a_command_of_operators() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    SPEAKING.iter().for_each(|name| sources(&crates.join(name), &mut all));
    assert!(all.len() > 100, "{} files", all.len());
    for path in all {
        let text = fs_err::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let is_said = line.contains("`narthex ") || line.contains("grants create");
            assert!(!is_said, "{}: {line}", path.display());
        }
    }
}

/// Number of bytes of a set of tools in the `tools/list` of an aggregated endpoint.
fn listed(has: &BuiltInTools) -> usize {
    let own = tools::all().into_iter().filter(|tool| has.has(tool.name));
    own.map(|tool| tool.definition().to_string().len() + "mcp__narthex__,".len()).sum()
}

/// D29: the default tools of runs, the tools to ask with, and the core tools cost a model at most
/// these numbers of tokens, at four bytes a token. Each name in a set is that of a tool, and each
/// tool has a name that a run can request.
#[test]
fn d29_sets_of_tools_cost_little() {
    for (set, tokens) in
        [(BuiltInTools::usual(true), 900), (BuiltInTools::Ask, 900), (BuiltInTools::Core, 1500)]
    {
        let bytes = listed(&set);
        assert!(bytes / 4 <= tokens, "{set:?}: {} tokens", bytes / 4);
    }
    let all: Vec<_> = tools::all();
    let names: BTreeSet<_> = all.iter().map(|tool| tool.name).collect();
    assert_eq!(names, BuiltInTools::all_names());
    let core = all.iter().filter(|tool| BuiltInTools::Core.has(tool.name)).count();
    assert_eq!(core, 9, "the seven, and those to ask");
    let sets = [BuiltInTools::orchestration(), BuiltInTools::live(), BuiltInTools::usual(true)];
    let counts = sets.map(|set| all.iter().filter(|tool| set.has(tool.name)).count());
    assert_eq!(counts, [11, 2, 5]);
}

/// The first column of the documentation's table contains each tool.
#[test]
fn every_tool_is_in_the_documentation() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = page.join("../../../docs/reference/built-in-tools.md");
    let page = fs_err::read_to_string(page).unwrap();
    let first = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let documented: BTreeSet<_> =
        first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    for tool in tools::all() {
        assert!(documented.contains(tool.name), "{}", tool.name);
    }
}
