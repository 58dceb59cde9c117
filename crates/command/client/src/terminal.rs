//! A full-screen terminal: draws it, and restores it, also while its program is stopped; and lines
//! for terminals.

mod inert;
mod lines;
mod sentences;

use std::io::{self, Write as _, stdin, stdout};

use rustix::{
    process::{Signal as ToSend, getpid, kill_process},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use tokio::{
    io::AsyncReadExt as _,
    signal::unix::{Signal, SignalKind, signal},
};

pub use self::{
    inert::{InertWriter, inert, inert_json},
    lines::{
        Rows, harmless, is_harmful, notice, render, render_fitting, row_fitting, sentences_fitting,
    },
};

use self::lines::fitting;

/// Switches to another screen than the one with the earlier output, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// Sequences that move to the first line, clear to the end of a line, and clear to the end of the
/// screen.
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_REST: &str = "\u{1b}[J";
/// The size of a terminal that does not report its own.
const USUAL: (usize, usize) = (80, 24);

/// The terminal, which is restored when this is dropped. Keys are read as they are typed, and not
/// shown.
#[derive(Debug)]
pub struct Screen {
    before: Termios,
}

impl Screen {
    /// Takes the terminal of standard input and output.
    ///
    /// # Errors
    /// When one of them is no terminal, or the terminal is gone.
    pub fn open() -> io::Result<Self> {
        let screen = Self { before: tcgetattr(stdin())? };
        screen.take()?;
        Ok(screen)
    }

    /// The current number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        size().0
    }

    /// Draws lines with a table below them, as far as they fit. The text must not move a cursor.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&self, heading: &[String], table: &str) -> io::Result<()> {
        let (columns, rows) = size();
        let heading = heading.iter().map(String::as_str).chain([""]);
        put(&frame(heading.chain(table.lines()), columns, rows))
    }

    /// Restores the terminal and stops the process, as Ctrl-Z does. When the process continues,
    /// takes the terminal again; the drawing is then gone.
    ///
    /// # Errors
    /// When the terminal is gone, or the process cannot be stopped.
    pub fn suspend(&self) -> io::Result<()> {
        self.give_back();
        kill_process(getpid(), ToSend::STOP)?;
        self.take()
    }

    fn take(&self) -> io::Result<()> {
        let mut typed = self.before.clone();
        // Ctrl-C and Ctrl-Z keep their meaning.
        typed.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        tcsetattr(stdin(), OptionalActions::Flush, &typed)?;
        put(ENTER)
    }

    fn give_back(&self) {
        // A failure has no reader left.
        put(LEAVE).ok();
        tcsetattr(stdin(), OptionalActions::Flush, &self.before).ok();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A request of the terminal, or of the user who started the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The terminal has another size.
    Resized,
    /// The program has to stop until it is continued: Ctrl-Z.
    Suspend,
    /// The program has to end: SIGTERM, or the terminal is closed.
    Leave,
}

/// The signals of this process, without their default effects.
#[derive(Debug)]
pub struct Signs {
    resized: Signal,
    suspend: Signal,
    end: Signal,
    closed: Signal,
}

impl Signs {
    /// Listens for signals from now on.
    ///
    /// # Errors
    /// When the system accepts no signal handler.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            suspend: signal(SignalKind::from_raw(ToSend::TSTP.as_raw()))?,
            end: signal(SignalKind::terminate())?,
            closed: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub async fn next(&mut self) -> Sign {
        tokio::select! {
            biased;
            _ = self.end.recv() => Sign::Leave,
            _ = self.closed.recv() => Sign::Leave,
            _ = self.suspend.recv() => Sign::Suspend,
            _ = self.resized.recv() => Sign::Resized,
        }
    }
}

/// Resolves when `q` is typed.
pub async fn leave_is_typed() {
    let mut keys = tokio::io::stdin();
    loop {
        match keys.read_u8().await {
            Ok(b'q' | b'Q') => return,
            Ok(_) => {}
            // Standard input has ended: only Ctrl-C can end the command.
            Err(_) => std::future::pending().await,
        }
    }
}

/// The numbers of columns and rows.
fn size() -> (usize, usize) {
    let size = tcgetwinsize(stdout()).ok();
    let (columns, rows) = size.map_or((0, 0), |size| (size.ws_col, size.ws_row));
    let or_usual = |count: u16, usual| if count > 0 { usize::from(count) } else { usual };
    (or_usual(columns, USUAL.0), or_usual(rows, USUAL.1))
}

/// The text that draws these lines over the old ones.
fn frame<'t>(lines: impl Iterator<Item = &'t str>, columns: usize, rows: usize) -> String {
    let lines = lines.take(rows).map(|line| format!("{}{CLEAR_LINE}", fitting(line, columns)));
    format!("{HOME}{}{CLEAR_REST}", lines.collect::<Vec<_>>().join("\r\n"))
}

fn put(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_terminal_size_is_not_drawn() {
        let drawn = frame("abcdef\nx\nmore".lines(), 4, 2);
        assert_eq!(drawn, "\u{1b}[Habcd\u{1b}[K\r\nx\u{1b}[K\u{1b}[J");
        assert_eq!(frame("日本語".lines(), 5, 2), "\u{1b}[H日本\u{1b}[K\u{1b}[J");
    }
}
