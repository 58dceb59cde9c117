//! The program `narthex`: passes its arguments to the library and ends with the returned code.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Half the cost of the system's allocator on the way of a call, which is many small pieces.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // First of all: a process that is to watch over a server does nothing else.
    if let Some(ended) = narthex_supervisor::shim::run_if_asked() {
        return ended;
    }
    #[cfg(target_os = "linux")]
    if let Some(ended) = narthex_fuse::mounter::run_if_asked() {
        return ended;
    }
    narthex::main()
}
