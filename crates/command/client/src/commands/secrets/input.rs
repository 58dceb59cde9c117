//! Takes a secret's value from a person without showing it, or from standard input.

use std::io::{self, IsTerminal, Read, Write, stderr, stdin};

use narthex_model::{ErrorKind, Secret, SecretName};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::VALUE_MAX;
use crate::{Failure, stop::stop_signal};

/// Room for the longest value and a line end, and one byte to tell that there is more.
const INPUT_MAX: usize = VALUE_MAX + 3;

pub(super) async fn read(name: &SecretName) -> Result<Secret, Failure> {
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
async fn ask(name: &SecretName) -> Result<Secret, Failure> {
    let stopped = stop_signal()?;
    let hidden = Hidden::begin()?;
    let mut terminal = stderr();
    write!(terminal, "Value of {name} (it is not shown): ")?;
    terminal.flush()?;
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::with_capacity(INPUT_MAX);
        stdin().read_line(&mut line).map(|_count| line)
    });
    let line = tokio::select! {
        line = line => line,
        () = stopped => {
            drop(hidden);
            writeln!(terminal)?;
            return Err(Failure::new(ErrorKind::Conflict, "stopped; nothing was stored"));
        }
    };
    drop(hidden);
    // The line end that was typed was not shown, either.
    writeln!(terminal)?;
    let line = line.map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    Ok(without_line_end(line?))
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
