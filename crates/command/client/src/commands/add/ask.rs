//! The values of a server: from flags, and from a person on a terminal.

use std::path::PathBuf;

use narthex_model::{Alias, ErrorKind, Secret, command::narthex};

use crate::{
    Context, Failure,
    cli::AddServerArgs,
    commands::typed,
    environment::variable,
    output::{self, harmless},
    public_registry::{
        entry::Draft,
        inputs::{Answer, Answers, Folders, InputFormat, Question, reference},
        ways::Way,
    },
};

/// Number of answers that may break a rule before the command ends.
const TRIES: usize = 3;

/// The folders by which file paths are completed.
pub(super) fn folders() -> Result<Folders, Failure> {
    let home = variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    Ok(Folders { current: std::env::current_dir()?, home })
}

/// The values of flags, and those that a person gives for required ones.
pub(super) async fn answers(
    args: &AddServerArgs,
    way: &Way,
    context: &Context,
) -> Result<Answers, Failure> {
    let questions = way.questions();
    let mut answers = Answers::default();
    for text in &args.set {
        let (name, answer) = set(text, &questions)?;
        answers.add(name, answer);
    }
    if args.set_secret.len() > 1 && !typed::can_ask() && !args.dry_run {
        let set = narthex("secrets set NAME", &[]);
        let text = format!(
            "standard input has one secret; store the others with `{set}`, and name them here with \
             --set NAME='${{secret:NAME}}'"
        );
        return Err(Failure::usage(text));
    }
    for name in &args.set_secret {
        let value = match args.dry_run {
            true => Secret::new(""),
            false => filled(name, typed::secret(name).await?)?,
        };
        answers.add(name, Answer::Secret(value));
    }
    let is_asking = !args.yes && !context.format.is_json() && typed::can_ask();
    let folders = folders()?;
    for question in &questions {
        let is_open = question.is_required
            && question.default.is_none()
            && answers.of(&question.name).is_empty();
        if !is_open {
            continue;
        }
        if args.dry_run && question.is_secret && question.can_be_secret {
            answers.add(&question.name, Answer::Secret(Secret::new("")));
        } else if is_asking && (question.can_be_secret || !question.is_secret) {
            answers.add(&question.name, asked(question, &folders).await?);
        }
    }
    Ok(answers)
}

/// One `NAME=VALUE`.
fn set<'t>(text: &'t str, questions: &[Question]) -> Result<(&'t str, Answer), Failure> {
    // The value may be a secret, so it is not repeated.
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err(Failure::usage("--set needs NAME=VALUE"));
    };
    if let Some(reference) = reference(value) {
        return Ok((name, reference));
    }
    let plain = name.trim_start_matches('-');
    let question = questions.iter().find(|one| one.name == name || one.name == plain);
    if question.is_some_and(|question| question.is_secret) {
        return Err(Failure::usage(format!(
            "`{name}` is a secret, and the command line is visible to other programs; give it with \
             --set-secret {name}"
        )));
    }
    Ok((name, Answer::Text(value.to_owned())))
}

fn filled(name: &str, secret: Secret) -> Result<Secret, Failure> {
    match secret.expose().is_empty() {
        true => Err(Failure::usage(format!("the secret `{name}` is empty; nothing was stored"))),
        false => Ok(secret),
    }
}

/// Asks until an answer follows the rules.
async fn asked(question: &Question, folders: &Folders) -> Result<Answer, Failure> {
    output::notice(&format!("\n{}", harmless(&explained(question))));
    for _ in 0..TRIES {
        if question.is_secret {
            let secret = typed::secret(&question.name).await?;
            if !secret.expose().is_empty() {
                return Ok(Answer::Secret(secret));
            }
            output::notice("it is required");
            continue;
        }
        let text = typed::line(&format!("{}: ", question.name)).await?;
        if text.is_empty() {
            output::notice("it is required");
            continue;
        }
        match question.checked(&text, folders) {
            Ok(_) => return Ok(reference(&text).unwrap_or(Answer::Text(text))),
            Err(rule) => output::notice(&harmless(&format!("it {rule}"))),
        }
    }
    let text = format!("no answer for `{}` followed the rules; nothing was stored", question.name);
    Err(Failure::new(ErrorKind::Invalid, harmless(&text)))
}

/// The purpose of a value, with its form.
fn explained(question: &Question) -> String {
    let Question { name, place, description, choices, placeholder, .. } = question;
    let mut text = format!("{name}, {place}");
    if let Some(description) = description {
        text.push_str(&format!(": {description}"));
    }
    if !choices.is_empty() {
        text.push_str(&format!(" (one of {})", choices.join(", ")));
    } else if let Some(example) = placeholder {
        text.push_str(&format!(" (such as {example})"));
    }
    match question.format {
        InputFormat::Number => text.push_str(" (a number)"),
        InputFormat::Boolean => text.push_str(" (true or false)"),
        InputFormat::FilePath => text.push_str(" (a path of this machine)"),
        InputFormat::Text => {}
    }
    text
}

/// The command or the address, and all that it gets, each in a line.
fn plan(draft: &Draft) -> Vec<String> {
    let line = |label: &str, text: &str| format!("  {label:<10} {text}");
    let mut lines = vec![line("starts", &draft.target())];
    lines
        .extend(draft.opened().iter().map(|(flag, text)| line("opens", &format!("{flag} {text}"))));
    lines.extend(draft.values().map(|(name, value)| {
        let text = match value {
            Some(text) => format!("{name}={text}"),
            None => format!("{name}, a secret, stored in the vault"),
        };
        line(draft.value_word(), &text)
    }));
    lines
}

/// Shows what is about to start, and asks a person whether it may.
pub(super) async fn confirm(
    args: &AddServerArgs,
    alias: &Alias,
    draft: &Draft,
    context: &Context,
) -> Result<(), Failure> {
    if context.format.is_json() || context.format.is_quiet() {
        return Ok(());
    }
    for line in plan(draft) {
        output::notice(&harmless(&line));
    }
    if args.yes || !typed::can_ask() {
        return Ok(());
    }
    match typed::is_confirmed(&format!("Try it, and add it as {alias}?")).await? {
        true => Ok(()),
        false => {
            let text = "nothing was started or stored; answer `y`, or add --yes";
            Err(Failure::new(ErrorKind::Denied, text))
        }
    }
}
