//! The misbehaving server as a program: its arguments are the words that set it.

use std::ffi::OsString;

fn main() {
    narthex_testkit::unruly::run_if_asked();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    narthex_testkit::unruly::run(words.join(",".as_ref()))
}
