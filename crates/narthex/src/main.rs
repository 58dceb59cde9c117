//! The program `narthex`: hands its arguments to the library and ends with the code it gets.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Half the cost of the system's allocator on the way of a call, which is many small pieces.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // First of all: a process that is to watch over a server does nothing else.
    narthex_supervisor::shim::run_if_asked().unwrap_or_else(narthex::main)
}
