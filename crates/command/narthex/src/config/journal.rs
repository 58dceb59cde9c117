//! The journal of systemd, which adds the time to each line of a service.

use std::{
    fs::File,
    io::stderr,
    os::{fd::AsFd as _, unix::fs::MetadataExt as _},
};

use narthex_client::environment::variable;

/// The variable by which systemd names the stream of the journal, as `DEVICE:INODE`.
const STREAM: &str = "JOURNAL_STREAM";

/// True if standard error of this process goes to the journal. A child may have the variable, too,
/// with another standard error.
pub(super) fn has_standard_error() -> bool {
    let Some(named) = variable(STREAM) else { return false };
    let own = stderr().as_fd().try_clone_to_owned();
    let own = own.map(File::from).and_then(|file| file.metadata());
    own.is_ok_and(|own| is_stream(&named, own.dev(), own.ino()))
}

fn is_stream(named: &str, device: u64, inode: u64) -> bool {
    named == format!("{device}:{inode}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_the_journal_is_known_by_its_device_and_inode() {
        assert!(is_stream("8:1234", 8, 1234));
        for (named, device, inode) in [("8:1234", 8, 12), ("8", 8, 1), ("", 0, 0)] {
            assert!(!is_stream(named, device, inode), "{named}");
        }
    }
}
