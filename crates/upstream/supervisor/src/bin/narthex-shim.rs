//! The supervising shim as its own program, for daemons whose program cannot run as a shim.

use std::process::ExitCode;

fn main() -> ExitCode {
    narthex_supervisor::shim::run_if_asked().unwrap_or_else(|| {
        #[expect(clippy::print_stderr, reason = "this is all that a person ever sees of it")]
        {
            eprintln!("narthex-shim is a part of narthex: only narthex can start it");
        }
        ExitCode::from(2)
    })
}
