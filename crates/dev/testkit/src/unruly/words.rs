//! Standard error: last words, and floods of them.

use std::io::{self, Write as _};

/// Lines as long as this are longer than what is kept of one.
const LONG: usize = 300 * 1024;

/// Why the process ends.
pub(super) fn last(text: &str) {
    // The reader may be gone.
    drop(writeln!(io::stderr(), "{text}"));
}

/// Writes so many lines of so many bytes each, and every third one is no UTF-8.
pub(super) fn write(lines: usize, bytes: usize) -> io::Result<()> {
    let mut out = io::stderr().lock();
    for number in 0..lines {
        let mut line = format!("line {number} ").into_bytes();
        line.resize(bytes.max(line.len()), if number % 3 == 0 { 0xff } else { b'x' });
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

/// Never ends, unless the reader is gone.
pub(super) fn flood() -> io::Result<()> {
    loop {
        write(1000, 80)?;
        write(1, LONG)?;
    }
}
