//! A whole terminal: drawn anew, and given back as it was.

use std::io::{self, Write as _, stdin, stdout};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::io::AsyncReadExt as _;

/// Another screen than the one with what was printed before, without a cursor.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";
/// To the first line; to the end of a line; to the end of the screen.
const HOME: &str = "\u{1b}[H";
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_REST: &str = "\u{1b}[J";

/// The terminal, until it is dropped. Keys are read as they are typed, and not shown.
#[derive(Debug)]
pub struct Screen {
    before: Termios,
}

impl Screen {
    /// Takes the terminal of standard input and output.
    ///
    /// # Errors
    /// When one of them is none, or is gone.
    pub fn open() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut typed = before.clone();
        // Ctrl-C stays what it is.
        typed.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        tcsetattr(stdin(), OptionalActions::Flush, &typed)?;
        let screen = Self { before };
        put(ENTER)?;
        Ok(screen)
    }

    /// Draws a line and a table below, as much as there is room for. What stands in them must not
    /// move a cursor.
    ///
    /// # Errors
    /// When the terminal is gone.
    pub fn draw(&self, title: &str, table: &str) -> io::Result<()> {
        let (columns, rows) = tcgetwinsize(stdout())
            .ok()
            .map(|size| (usize::from(size.ws_col), usize::from(size.ws_row)))
            .filter(|(columns, rows)| *columns > 0 && *rows > 0)
            .unwrap_or((80, 24));
        put(&frame([title, ""].into_iter().chain(table.lines()), columns, rows))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Whatever fails here, there is nobody left to be told.
        put(LEAVE).ok();
        tcsetattr(stdin(), OptionalActions::Flush, &self.before).ok();
    }
}

/// Resolves when `q` is typed.
pub async fn leave_is_typed() {
    let mut keys = tokio::io::stdin();
    loop {
        match keys.read_u8().await {
            Ok(b'q' | b'Q') => return,
            Ok(_) => {}
            // Nothing more can be typed: Ctrl-C is left.
            Err(_) => std::future::pending().await,
        }
    }
}

/// What draws these lines over what is there.
fn frame<'t>(lines: impl Iterator<Item = &'t str>, columns: usize, rows: usize) -> String {
    let cut = |line: &str| line.chars().take(columns).collect::<String>();
    let lines = lines.take(rows).map(|line| format!("{}{CLEAR_LINE}", cut(line)));
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
    fn what_has_no_room_is_not_drawn() {
        let drawn = frame("abcdef\nx\nmore".lines(), 4, 2);
        assert_eq!(drawn, "\u{1b}[Habcd\u{1b}[K\r\nx\u{1b}[K\u{1b}[J");
    }
}
