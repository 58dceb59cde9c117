//! Disables core dumps: memory with secrets must not be written to a disk after a crash.

use narthex_model::ErrorKind;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Failure;

/// Too small for any file; and at exactly this the kernel hands the dump to no program, either,
/// which at 0 it does where `core_pattern` names one (core(5)).
const BYTES: u64 = 1;

/// Switches core dumps off for this process and all programs that it starts: shims, and servers,
/// which hold secrets of their own.
pub(crate) fn forbid() -> Result<(), Failure> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let current = Some(maximum.map_or(BYTES, |most| most.min(BYTES)));
    setrlimit(Resource::Core, Rlimit { current, maximum }).map_err(|error| {
        Failure::new(ErrorKind::Bug, format!("core dumps cannot be disabled: {error}"))
    })
}
