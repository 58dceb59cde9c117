//! Takes values that a person types: a secret without showing it, or from standard input, and plain
//! answers.

use std::io::{self, BufRead, IsTerminal, Read, Write, stderr, stdin, stdout};

use narthex_model::{ErrorKind, Secret};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
};

use crate::{
    Failure,
    output::{Format, harmless},
    stop::stop_signal,
};

/// Maximum length of a value for the vault, in bytes.
pub const VALUE_MAX: usize = 64 * 1024;
/// Room for the longest value and a line end, and one byte to tell that there is more.
const INPUT_MAX: usize = VALUE_MAX + 3;

/// Longest answer that is no secret, in bytes.
const LINE_MAX: usize = 64 * 1024;

/// A secret of this name: asked for on the terminal, or the whole standard input.
pub(super) async fn secret(name: &str) -> Result<Secret, Failure> {
    if stdin().is_terminal() {
        return ask(name).await;
    }
    // At once as long as it gets: a text that moves leaves a copy behind.
    let mut text = String::with_capacity(INPUT_MAX);
    stdin().take(INPUT_MAX as u64).read_to_string(&mut text)?;
    Ok(without_line_end(text))
}

/// Asks on the terminal, which shows nothing of the answer, and is as it was afterwards, also after
/// Ctrl-C.
async fn ask(name: &str) -> Result<Secret, Failure> {
    let hidden = Hidden::begin()?;
    let line = typed(&format!("Value of {name} (it is not shown): "), INPUT_MAX).await;
    drop(hidden);
    // The line end that was typed was not shown, either.
    writeln!(stderr())?;
    Ok(without_line_end(line?.ok_or_else(ended)?))
}

/// Asks on the terminal and shows the answer. Text that was typed before the question is dropped.
/// The answer has no space around it.
pub(super) async fn line(prompt: &str) -> Result<String, Failure> {
    tcflush(stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    let line = typed(prompt, LINE_MAX).await?.ok_or_else(ended)?;
    Ok(line.trim().to_owned())
}

/// True if the user agrees: beforehand, by `--yes`, or to a question on a terminal that shows what
/// it is about.
///
/// # Errors
/// As [`is_confirmed`].
pub async fn is_agreed(is_yes: bool, format: Format, question: &str) -> Result<bool, Failure> {
    Ok(is_yes || (format.is_text() && is_seen() && is_confirmed(question).await?))
}

/// Asks a question on the terminal, after an empty line. Anything but a clear yes is a no, and so
/// is the end of the input. Text that was typed before the question is dropped.
///
/// # Errors
/// When the terminal cannot be read, or a signal stops the wait.
pub async fn is_confirmed(question: &str) -> Result<bool, Failure> {
    tcflush(stdin(), QueueSelector::IFlush).map_err(io::Error::from)?;
    writeln!(stderr())?;
    let answer = typed(&format!("{question} [y/N] "), LINE_MAX).await;
    let answer = answer.map_err(|failure| match failure.is_interrupted() {
        true => Failure::interrupted("nothing has changed"),
        false => failure,
    })?;
    let answer = answer.unwrap_or_default();
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// True if a person sees the output and can answer.
pub fn is_seen() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// True if a person can be asked: the questions are seen, and the answers are typed.
pub(super) fn can_ask() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// A line of the terminal, with its end; `None` at the end of the input. A signal stops the wait.
async fn typed(prompt: &str, most: usize) -> Result<Option<String>, Failure> {
    let stopped = stop_signal()?;
    let mut terminal = stderr();
    write!(terminal, "{}", harmless(prompt))?;
    terminal.flush()?;
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::with_capacity(most);
        let count = stdin().lock().take(most as u64).read_line(&mut line)?;
        Ok::<_, io::Error>((count > 0).then_some(line))
    });
    let line = tokio::select! {
        line = line => line,
        () = stopped => {
            writeln!(terminal)?;
            return Err(Failure::interrupted("nothing was stored"));
        }
    };
    Ok(line.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))??)
}

fn ended() -> Failure {
    Failure::new(ErrorKind::Conflict, "the input ended before the answer; nothing was stored")
}

fn without_line_end(mut text: String) -> Secret {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Secret::new(text)
}

/// While this is held, the terminal shows nothing that is typed.
struct Hidden {
    before: Termios,
}

impl Hidden {
    fn begin() -> Result<Self, Failure> {
        let before = tcgetattr(stdin()).map_err(io::Error::from)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL);
        // Text that was typed before the prompt is dropped.
        tcsetattr(stdin(), OptionalActions::Flush, &hidden).map_err(io::Error::from)?;
        Ok(Self { before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(stdin(), OptionalActions::Now, &self.before) {
            tracing::warn!(%error, "the terminal still hides typed text; run `stty sane`");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trailing_line_end_is_removed_from_the_value() {
        let table = [
            ("x\n", "x"),
            ("x\r\n", "x"),
            ("x", "x"),
            ("x\n\n", "x\n"),
            (" x \n", " x "),
            ("", ""),
        ];
        for (given, value) in table {
            assert_eq!(without_line_end(given.to_owned()).expose(), value, "{given:?}");
        }
    }
}
