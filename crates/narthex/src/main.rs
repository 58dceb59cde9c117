//! The program `narthex`: hands its arguments to the library and ends with the code it gets.

use std::process::ExitCode;

fn main() -> ExitCode {
    narthex::main()
}
