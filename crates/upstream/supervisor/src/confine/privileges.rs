//! The privileges of root that cannot undo a confinement.

use std::io;

use rustix::thread::CapabilitySet;

use super::plan::Privileges;

/// Privileges over the owners of files and processes. The others give power over other processes,
/// the kernel, devices, or limits.
const HARMLESS: [(CapabilitySet, &str); 9] = [
    (CapabilitySet::CHOWN, "CAP_CHOWN"),
    (CapabilitySet::DAC_OVERRIDE, "CAP_DAC_OVERRIDE"),
    (CapabilitySet::FOWNER, "CAP_FOWNER"),
    (CapabilitySet::FSETID, "CAP_FSETID"),
    (CapabilitySet::KILL, "CAP_KILL"),
    (CapabilitySet::SETGID, "CAP_SETGID"),
    (CapabilitySet::SETUID, "CAP_SETUID"),
    (CapabilitySet::NET_BIND_SERVICE, "CAP_NET_BIND_SERVICE"),
    (CapabilitySet::SETFCAP, "CAP_SETFCAP"),
];

/// The privileges of this process that a child keeps.
pub(super) fn kept(privileges: Privileges) -> io::Result<CapabilitySet> {
    let own = rustix::thread::capabilities(None)?.permitted;
    Ok(match privileges {
        Privileges::All => own,
        Privileges::Few => HARMLESS.iter().map(|(one, _)| *one).collect::<CapabilitySet>() & own,
        Privileges::None => CapabilitySet::empty(),
    })
}

/// The names of harmless ones in a set.
pub(super) fn names(set: CapabilitySet) -> impl Iterator<Item = &'static str> {
    HARMLESS.into_iter().filter(move |(one, _)| set.contains(*one)).map(|(_, name)| name)
}
