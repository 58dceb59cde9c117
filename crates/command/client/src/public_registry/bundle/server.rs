//! The command of an unpacked bundle: its manifest with the folders of this machine filled in, and
//! with the places of the values that a user gives.
//!
//! A bundle runs its own files, by the runtime of its kind. Other programs are refused: the hash
//! vouches for the bundle alone, and a runner such as `npx` would load unchecked code.

use std::{os::unix::fs::PermissionsExt, path::Path};

use fs_err as fs;

use super::{
    manifest::{Launch, Manifest, ServerKind, Setting},
    path::inside,
};
use crate::public_registry::{
    compose::{Composed, Parts, Piece},
    inputs::{self, Answer, Answers, Question},
};

/// The variable of a value that a user gives, without its key.
const SETTING: &str = "user_config.";
/// The words for an argument, which other programs can read.
const ARGUMENT: &str = "an argument of the bundle";

/// The command of a bundle, in which the values of its user are missing.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleServer {
    /// The runtime, or the absolute path of a file of the bundle.
    command: String,
    args: Vec<Template>,
    env: Vec<(String, Template)>,
    folder: String,
    values: Vec<UserValue>,
}

/// The folders by which a manifest is filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Folders<'f> {
    /// The folder that has the files now.
    pub(super) files: &'f Path,
    /// The folder that is going to have them.
    pub(super) folder: &'f str,
    /// The user's own folder.
    pub(super) home: Option<&'f str>,
}

/// A value that a user gives.
#[derive(Debug, Clone, PartialEq)]
struct UserValue {
    question: Question,
    defaults: Vec<String>,
}

/// A text with places of values.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Fixed(String),
    /// The key of a value.
    Value(String),
}

impl BundleServer {
    /// The command of this manifest. Makes a file of the bundle that is started executable.
    ///
    /// # Errors
    /// All faults, each with the member of the manifest.
    pub(super) fn new(manifest: &Manifest, folders: &Folders<'_>) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        if !folders.files.join(&manifest.entry_point).is_file() {
            faults.push(format!(
                "`server.entry_point` is `{}`, and the archive has no such file",
                manifest.entry_point
            ));
        }
        let usual = usual(manifest);
        let launch = manifest.launch.as_ref().unwrap_or(&usual);
        let command = folders.fill(&launch.command, &manifest.settings);
        let command = command.and_then(|filled| program(manifest.kind, &filled, folders));
        let command = command.unwrap_or_else(|reason| {
            faults.push(format!("`server.mcp_config.command` {reason}"));
            String::new()
        });
        let mut filled = |text: &str, at: &str| {
            folders.fill(text, &manifest.settings).unwrap_or_else(|reason| {
                faults.push(format!("`server.mcp_config.{at}` {reason}"));
                Template(Vec::new())
            })
        };
        let args: Vec<_> = launch.args.iter().map(|text| filled(text, "args")).collect();
        let variable =
            |(name, text): (&String, &String)| (name.clone(), filled(text, &format!("env.{name}")));
        let env: Vec<_> = launch.env.iter().map(variable).collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let is_in = |template: &Template, key: &str| template.keys().any(|one| one == key);
        let value = |setting: &Setting| {
            let in_args = args.iter().any(|template| is_in(template, &setting.key));
            let in_env = env.iter().any(|(_, template)| is_in(template, &setting.key));
            (in_args || in_env).then(|| UserValue::of(setting, !in_args, folders))
        };
        let values = manifest.settings.iter().filter_map(value).collect();
        Ok(Self { command, args, env, folder: folders.folder.to_owned(), values })
    }

    /// The values that a user can give.
    pub(in crate::public_registry) fn questions(&self) -> impl Iterator<Item = &Question> {
        self.values.iter().map(|value| &value.question)
    }

    /// True if the manifest sets this variable.
    pub(in crate::public_registry) fn sets(&self, variable: &str) -> bool {
        self.env.iter().any(|(name, _)| name == variable)
    }

    /// The program.
    pub(in crate::public_registry) fn command(&self) -> &str {
        &self.command
    }

    /// The folder of the bundle, in which the server works.
    pub(in crate::public_registry) fn folder(&self) -> &str {
        &self.folder
    }

    /// Adds the arguments and variables with these answers.
    pub(in crate::public_registry) fn compose(
        &self,
        answers: &Answers,
        folders: &inputs::Folders,
        parts: &mut Parts,
        faults: &mut Vec<String>,
    ) {
        let values = |key: &str| self.given(key, answers, folders);
        let mut is_option = false;
        for template in &self.args {
            match template.each(&values) {
                // An option whose value is not given is left out with it.
                Ok(words) if words.is_empty() && is_option => drop(parts.own.pop()),
                Ok(words) => parts.own.extend(words),
                Err(fault) => faults.push(fault),
            }
            is_option = template.is_option();
        }
        for (name, template) in &self.env {
            let place = format!("the variable `{name}`");
            match template.one(&place, &values) {
                Ok(value) => parts.values.extend(value.map(|value| (name.clone(), value))),
                Err(fault) => faults.push(fault),
            }
        }
    }

    /// The values of a key: those given, or else the defaults.
    fn given(&self, key: &str, answers: &Answers, folders: &inputs::Folders) -> Vec<Answer> {
        let Some(value) = self.values.iter().find(|one| one.question.name == key) else {
            return Vec::new();
        };
        let whole = |text: &String| {
            let checked = value.question.checked(text, folders);
            Answer::Text(checked.unwrap_or_else(|_fault| text.clone()))
        };
        match answers.of(key) {
            [] => value.defaults.iter().map(whole).collect(),
            given => given
                .iter()
                .map(|answer| match answer {
                    Answer::Text(text) => whole(text),
                    other => other.clone(),
                })
                .collect(),
        }
    }
}

impl UserValue {
    fn of(setting: &Setting, can_be_secret: bool, folders: &Folders<'_>) -> Self {
        let filled = |text: &String| {
            let filled = folders.fill(text, &[]).ok().and_then(|template| template.fixed());
            filled.unwrap_or_else(|| text.clone())
        };
        let defaults: Vec<_> = setting.defaults.iter().map(filled).collect();
        let question = Question {
            name: setting.key.clone(),
            place: format!("the setting `{}`", setting.key),
            description: setting.about.clone(),
            is_required: setting.is_required,
            is_secret: setting.is_secret,
            is_repeated: setting.is_repeated,
            can_be_secret,
            format: setting.format,
            range: setting.range,
            default: defaults.first().cloned(),
            placeholder: None,
            choices: Vec::new(),
        };
        Self { question, defaults }
    }
}

impl Folders<'_> {
    /// Fills in the folders of a text, and finds the places of values.
    fn fill(&self, text: &str, settings: &[Setting]) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut fixed = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            fixed.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                fixed.push_str("${");
                rest = after;
                continue;
            };
            rest = behind;
            match name.strip_prefix(SETTING) {
                Some(key) if settings.iter().any(|setting| setting.key == key) => {
                    parts.push(Part::Fixed(std::mem::take(&mut fixed)));
                    parts.push(Part::Value(key.to_owned()));
                }
                Some(key) => {
                    return Err(format!("names `{key}`, which `user_config` does not have"));
                }
                None => match self.folder_of(name)? {
                    Some(folder) => fixed.push_str(&folder),
                    // A text of the server, which stays one.
                    None => fixed.push_str(&format!("${{{name}}}")),
                },
            }
        }
        fixed.push_str(rest);
        parts.push(Part::Fixed(fixed));
        parts.retain(|part| !matches!(part, Part::Fixed(text) if text.is_empty()));
        Ok(Template(parts))
    }

    /// The text for a variable; `None` if it is not one of manifests.
    fn folder_of(&self, name: &str) -> Result<Option<String>, String> {
        let below = match name {
            "__dirname" => return Ok(Some(self.folder.to_owned())),
            "/" | "pathSeparator" => return Ok(Some("/".to_owned())),
            "HOME" => "",
            "DESKTOP" => "/Desktop",
            "DOCUMENTS" => "/Documents",
            "DOWNLOADS" => "/Downloads",
            _ => return Ok(None),
        };
        match self.home {
            Some(home) => Ok(Some(format!("{home}{below}"))),
            None => Err(format!("needs `{name}`, and the variable HOME is not set here")),
        }
    }
}

impl Template {
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Value(key) => Some(key.as_str()),
            Part::Fixed(_) => None,
        })
    }

    /// The text, if it has no place of a value.
    fn fixed(&self) -> Option<String> {
        let texts = self.0.iter().map(|part| match part {
            Part::Fixed(text) => Some(text.as_str()),
            Part::Value(_) => None,
        });
        texts.collect()
    }

    /// True for a fixed word such as `--name`, whose value may be the next one.
    fn is_option(&self) -> bool {
        self.fixed().is_some_and(|text| text.starts_with('-') && !text.contains('='))
    }

    /// One argument for each of the values: several if a value has several, none without one.
    fn each(&self, values: &dyn Fn(&str) -> Vec<Answer>) -> Result<Vec<String>, String> {
        let counts: Vec<_> = self.keys().map(|key| values(key).len()).collect();
        if counts.contains(&0) {
            return Ok(Vec::new());
        }
        let count = counts.into_iter().max().unwrap_or(1);
        (0..count).map(|index| self.at(index, ARGUMENT, values)?.visible(ARGUMENT)).collect()
    }

    /// The value of a variable; `None` if a part of it is not given.
    fn one(
        &self,
        place: &str,
        values: &dyn Fn(&str) -> Vec<Answer>,
    ) -> Result<Option<Composed>, String> {
        for key in self.keys() {
            match values(key).len() {
                0 => return Ok(None),
                1 => {}
                _ => {
                    return Err(format!(
                        "{place} takes one value of `{key}`; give one with --set {key}=VALUE"
                    ));
                }
            }
        }
        self.at(0, place, values).map(Some)
    }

    fn at(
        &self,
        index: usize,
        place: &str,
        values: &dyn Fn(&str) -> Vec<Answer>,
    ) -> Result<Composed, String> {
        let given: Vec<Option<Answer>> = self
            .0
            .iter()
            .map(|part| match part {
                Part::Fixed(_) => None,
                // A value with fewer parts than another repeats its last one.
                Part::Value(key) => {
                    let all = values(key);
                    all.get(index).or(all.last()).cloned()
                }
            })
            .collect();
        let pieces = self.0.iter().zip(&given).filter_map(|(part, given)| match (part, given) {
            (Part::Fixed(text), _) => Some(Piece::Fixed(text)),
            (Part::Value(_), given) => given.as_ref().map(Piece::Value),
        });
        Composed::of(place, &pieces.collect::<Vec<_>>())
    }
}

/// The command of a kind of server whose manifest has none.
fn usual(manifest: &Manifest) -> Launch {
    let file = format!("${{__dirname}}/{}", manifest.entry_point);
    let (command, args) = match manifest.kind {
        ServerKind::Node => ("node", vec![file]),
        ServerKind::Python => ("python3", vec![file]),
        ServerKind::Uv => {
            let run = ["run", "--directory", "${__dirname}", &manifest.entry_point];
            ("uv", run.map(str::to_owned).to_vec())
        }
        ServerKind::Binary => (file.as_str(), Vec::new()),
    };
    Launch { command: command.to_owned(), args, ..Launch::default() }
}

/// The program that is started: the runtime of the kind, or a file of the bundle.
fn program(kind: ServerKind, command: &Template, folders: &Folders<'_>) -> Result<String, String> {
    let Some(text) = command.fixed() else {
        return Err("depends on a value of `user_config`".to_owned());
    };
    let runtimes: &[&str] = match kind {
        ServerKind::Node => &["node"],
        ServerKind::Python => &["python3", "python", "uv"],
        ServerKind::Uv => &["uv"],
        ServerKind::Binary => &[],
    };
    if runtimes.contains(&text.as_str()) {
        // Many systems have no `python` any more.
        return Ok(if text == "python" { "python3".to_owned() } else { text });
    }
    let below = Path::new(&text).strip_prefix(folders.folder).unwrap_or(Path::new(&text));
    let below = below.strip_prefix(".").unwrap_or(below).to_string_lossy();
    let file = inside(&below).ok().filter(|path| folders.files.join(path).is_file());
    let Some(file) = file else {
        return Err(format!(
            "is `{text}`, which is no file of the bundle{}",
            match runtimes {
                [] => String::new(),
                [first, ..] => format!(", and not `{first}`"),
            }
        ));
    };
    // Archives of some systems have no modes.
    let executable =
        fs::set_permissions(folders.files.join(&file), std::fs::Permissions::from_mode(0o700));
    executable.map_err(|error| format!("cannot be made executable: {error}"))?;
    Ok(format!("{}/{}", folders.folder, file.display()))
}

#[cfg(test)]
mod tests;
