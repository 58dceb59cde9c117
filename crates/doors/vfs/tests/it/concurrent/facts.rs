//! The changes and their times, and the answers that they permit.
//!
//! A change is noted before it is made and after it: an operation may or may not have seen it if
//! the two overlap, and must have seen it if the change had ended before the operation began.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use narthex_vfs::Code;

use super::device::Tagged;

/// The name of a mount: whose it is, and the alias.
pub(crate) type Name = (u64, &'static str);

/// From one moment to a later one. No two moments of all spans are the same.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub(crate) began: u64,
    /// The end of time while it lasts.
    pub(crate) ended: u64,
}

impl Span {
    /// True if the span ended before another one began.
    fn is_before(self, other: Self) -> bool {
        self.ended < other.began
    }

    /// True if another span may have seen this one.
    fn can_be_seen_by(self, other: Self) -> bool {
        self.began < other.ended
    }
}

/// The certainty of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sure {
    No,
    Perhaps,
    Yes,
}

impl Sure {
    /// The certainty that a change was made, for a look within a span.
    fn of(change: Span, look: Span) -> Self {
        match () {
            () if change.is_before(look) => Self::Yes,
            () if change.can_be_seen_by(look) => Self::Perhaps,
            () => Self::No,
        }
    }

    fn of_any(changes: impl IntoIterator<Item = Span>, look: Span) -> Self {
        changes.into_iter().map(|change| Self::of(change, look)).max().unwrap_or(Self::No)
    }
}

/// The certainty of a fact about one of several candidates.
fn of_one(all: impl Iterator<Item = Sure> + Clone) -> Sure {
    match (all.clone().min(), all.max()) {
        (Some(Sure::Yes), _) => Sure::Yes,
        (_, most) => most.unwrap_or(Sure::No).min(Sure::Perhaps),
    }
}

/// One mount, from its begin to its end.
#[derive(Debug)]
pub(crate) struct Mount {
    pub(crate) device: Arc<Tagged>,
    mounted: Span,
    /// The change that unmounted it, by its name or with its process.
    gone: Option<usize>,
    /// The changes in which it crashed, and came back.
    crashes: Vec<(usize, Option<usize>)>,
    /// The changes that put another server behind it.
    renewed: Vec<usize>,
}

/// One process, from its begin to its end.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u64,
    /// Whose mounts are no secret to it: from its begin on, or since a change.
    known: BTreeMap<u64, Option<usize>>,
    /// The paths that mean other mounts, with those mounts, in order.
    also: Vec<(Name, Name, usize)>,
    /// The mounts that exist and that it may not open: each change replaces the earlier ones.
    closed: Vec<(BTreeSet<Name>, usize)>,
    ended: Option<usize>,
    /// The mounts that it may open from its begin on.
    inherited: BTreeSet<Name>,
    /// The allowed (`true`) and the revoked mounts, in order.
    rights: Vec<(Name, bool, usize)>,
}

/// An open file: its process, the mounts that it may be of, and the time of its opening.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    pub(crate) process: usize,
    pub(crate) name: Name,
    /// The mounts of the name that were there when it was opened; more than one if they changed
    /// meanwhile.
    pub(crate) mounts: Vec<usize>,
    pub(crate) at: Span,
    pub(crate) closed: Option<Span>,
}

/// The places that a path may lead to.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) permitted: Permitted,
    /// The mount's own name, which may be another than that of the path.
    pub(crate) name: Name,
    /// The mounts of the name that it may be.
    pub(crate) mounts: Vec<usize>,
}

/// The permitted answers of an operation.
#[derive(Debug, Default)]
pub(crate) struct Permitted {
    pub(crate) codes: Vec<Code>,
    /// True if answers other than these codes are permitted.
    pub(crate) may_go_on: bool,
}

impl Permitted {
    fn add(&mut self, code: Code, sure: Sure) {
        if sure > Sure::No {
            self.codes.push(code);
        }
        self.may_go_on &= sure < Sure::Yes;
    }
}

/// All that was changed.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    now: u64,
    changes: Vec<Span>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) processes: Vec<Process>,
    by_name: BTreeMap<Name, Vec<usize>>,
}

impl Facts {
    /// A moment after all that were before.
    pub(crate) fn moment(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A change is about to be made.
    pub(crate) fn begin(&mut self) -> usize {
        let began = self.moment();
        self.changes.push(Span { began, ended: u64::MAX });
        self.changes.len() - 1
    }

    /// Notes that a change was made.
    pub(crate) fn end(&mut self, change: usize) {
        self.changes[change].ended = self.moment();
    }

    pub(crate) fn begin_process(&mut self, pid: u64, parent: Option<usize>) -> usize {
        let mut known = BTreeMap::from([(pid, None)]);
        let mut inherited = BTreeSet::new();
        if let Some(parent) = parent {
            known.extend(self.processes[parent].known.keys().map(|pid| (*pid, None)));
            inherited = self.allowed_now(parent);
        }
        let (ended, rights, also, closed) = (None, Vec::new(), Vec::new(), Vec::new());
        self.processes.push(Process { pid, known, also, closed, ended, inherited, rights });
        self.processes.len() - 1
    }

    pub(crate) fn end_process(&mut self, process: usize) -> usize {
        let change = self.begin();
        self.processes[process].ended = Some(change);
        let pid = self.processes[process].pid;
        for (_, mounts) in self.by_name.range((pid, "")..(pid + 1, "")) {
            if let Some(last) = mounts.last() {
                self.mounts[*last].gone.get_or_insert(change);
            }
        }
        change
    }

    /// A mount for a process that is its owner, which may open it from here on.
    pub(crate) fn mount(
        &mut self,
        owner: usize,
        name: Name,
        device: Arc<Tagged>,
    ) -> (usize, usize) {
        let change = self.begin();
        self.processes[owner].rights.push((name, true, change));
        let mounted = change;
        self.mounts.push(Mount {
            device,
            mounted: self.changes[mounted],
            gone: None,
            crashes: Vec::new(),
            renewed: Vec::new(),
        });
        let mount = self.mounts.len() - 1;
        self.by_name.entry(name).or_default().push(mount);
        (mount, change)
    }

    /// The mount was made.
    pub(crate) fn end_mount(&mut self, mount: usize, change: usize) {
        self.end(change);
        self.mounts[mount].mounted = self.changes[change];
    }

    pub(crate) fn unmount(&mut self, mount: usize) -> usize {
        let change = self.begin();
        self.mounts[mount].gone.get_or_insert(change);
        change
    }

    pub(crate) fn revoke(&mut self, process: usize, name: Name) -> usize {
        let change = self.begin();
        self.processes[process].rights.push((name, false, change));
        change
    }

    /// A path means another mount to a process.
    pub(crate) fn also(&mut self, process: usize, old: Name, now: Name) -> usize {
        let change = self.begin();
        self.processes[process].also.push((old, now, change));
        change
    }

    /// Notes that a process may know the mounts of another one.
    pub(crate) fn know(&mut self, process: usize, above: u64) -> usize {
        let change = self.begin();
        self.processes[process].known.entry(above).or_insert(Some(change));
        change
    }

    /// These mounts, and no others, are there and not for a process.
    pub(crate) fn close_off(&mut self, process: usize, closed: BTreeSet<Name>) -> usize {
        let change = self.begin();
        self.processes[process].closed.push((closed, change));
        change
    }

    /// Another server is behind a mount.
    pub(crate) fn renew(&mut self, mount: usize) -> usize {
        let change = self.begin();
        self.mounts[mount].renewed.push(change);
        change
    }

    /// Notes that a server crashes, or comes back.
    pub(crate) fn crash(&mut self, mount: usize) -> usize {
        let change = self.begin();
        self.mounts[mount].crashes.push((change, None));
        change
    }

    pub(crate) fn come_back(&mut self, mount: usize) -> usize {
        let change = self.begin();
        self.mounts[mount].crashes.last_mut().expect("it has crashed").1 = Some(change);
        change
    }

    pub(crate) fn is_down(&self, mount: usize) -> bool {
        self.mounts[mount].crashes.last().is_some_and(|(_, back)| back.is_none())
    }

    pub(crate) fn is_mounted(&self, mount: usize) -> bool {
        self.mounts[mount].gone.is_none()
    }

    /// The last mount of a name, if it was not taken away.
    pub(crate) fn mounted(&self, name: Name) -> Option<usize> {
        let last = *self.by_name.get(&name)?.last()?;
        self.is_mounted(last).then_some(last)
    }

    /// The names that a process may open at this moment.
    pub(crate) fn allowed_now(&self, process: usize) -> BTreeSet<Name> {
        let process = &self.processes[process];
        let mut allowed = process.inherited.clone();
        for (name, is_allowed, _) in &process.rights {
            match is_allowed {
                true => allowed.insert(*name),
                false => allowed.remove(name),
            };
        }
        allowed
    }

    /// Two flags: true if a process may open a name, and true if it may not. Both may be permitted.
    fn rights(&self, process: usize, name: Name, look: Span) -> (bool, bool) {
        let process = &self.processes[process];
        let of_name = process.rights.iter().filter(|(of, ..)| *of == name);
        let changes: Vec<_> =
            of_name.map(|(_, is_allowed, change)| (*is_allowed, self.changes[*change])).collect();
        // A change counts unless one to the contrary came after it, and before the look.
        let can_be = |wanted: bool| {
            let is_undone = |after: u64| {
                let others = changes.iter().filter(|(is_allowed, _)| *is_allowed != wanted);
                others.into_iter().any(|(_, other)| other.began > after && other.is_before(look))
            };
            let from_begin = process.inherited.contains(&name) == wanted && !is_undone(0);
            from_begin
                || changes.iter().any(|(is_allowed, change)| {
                    let counts = *is_allowed == wanted && change.can_be_seen_by(look);
                    counts && !is_undone(change.ended)
                })
        };
        (can_be(true), can_be(false))
    }

    /// The mounts of a name that can be found within a span, and whether none can be.
    fn there(&self, name: Name, look: Span) -> (Vec<usize>, bool) {
        let (mut there, mut is_sure) = (Vec::new(), false);
        for number in self.by_name.get(&name).into_iter().flatten().rev() {
            let mount = &self.mounts[*number];
            let gone = self.gone(*number, look);
            if gone == Sure::Yes {
                break;
            }
            match Sure::of(mount.mounted, look) {
                Sure::No => {}
                mounted => {
                    there.push(*number);
                    is_sure |= mounted == Sure::Yes && gone == Sure::No;
                }
            }
        }
        (there, !is_sure)
    }

    fn gone(&self, mount: usize, look: Span) -> Sure {
        let change = self.mounts[mount].gone.map(|change| self.changes[change]);
        Sure::of_any(change, look)
    }

    /// The certainty that a process had ended.
    pub(crate) fn ended(&self, process: usize, look: Span) -> Sure {
        let change = self.processes[process].ended.map(|change| self.changes[change]);
        Sure::of_any(change, look)
    }

    /// The permitted answers for a path of a mount, and the mounts that the path may be of.
    pub(crate) fn finding(&self, process: usize, name: Name, look: Span) -> Found {
        let mut permitted = Permitted { codes: Vec::new(), may_go_on: true };
        permitted.add(Code::DeviceDisconnected, self.ended(process, look));
        let mut found = Found { permitted, name, mounts: Vec::new() };
        if !std::mem::take(&mut found.permitted.may_go_on) {
            return found;
        }
        let also = self.processes[process].also.iter().filter(|(old, ..)| *old == name);
        let meanings = self.counting(name, also.map(|(_, now, change)| (*now, *change)), look);
        for name in meanings {
            self.find_as(process, name, look, &mut found);
        }
        found
    }

    /// Adds the answers for one meaning of a path. Only one of all its meanings can have mounts.
    fn find_as(&self, process: usize, name: Name, look: Span, found: &mut Found) {
        let (there, may_be_absent) = self.there(name, look);
        let (may_open, may_not) = self.rights(process, name, look);
        let known = self.known(process, name.0, look);
        let closed = &self.processes[process].closed;
        let closed = closed.iter().map(|(closed, change)| (closed.contains(&name), *change));
        let closed = self.counting(false, closed, look);
        let may_be_refused = !there.is_empty() && may_not;
        let codes = &mut found.permitted.codes;
        if (may_be_absent && closed.contains(&false)) || (may_be_refused && known < Sure::Yes) {
            codes.push(Code::NotFound);
        }
        if (may_be_absent && closed.contains(&true)) || (may_be_refused && known > Sure::No) {
            codes.push(Code::Permission);
        }
        if may_open && !there.is_empty() {
            assert!(found.mounts.is_empty(), "a path may mean two mounts that are there");
            found.permitted.may_go_on = true;
            (found.name, found.mounts) = (name, there);
        }
    }

    /// The certainty that a process may know the mounts of a pid.
    fn known(&self, process: usize, pid: u64, look: Span) -> Sure {
        match self.processes[process].known.get(&pid) {
            None => Sure::No,
            Some(None) => Sure::Yes,
            Some(Some(change)) => Sure::of(self.changes[*change], look),
        }
    }

    /// The values that may count of one that each change replaces, in order.
    fn counting<T: PartialEq>(
        &self,
        first: T,
        changes: impl IntoIterator<Item = (T, usize)>,
        look: Span,
    ) -> Vec<T> {
        let mut values = vec![first];
        for (value, change) in changes {
            match Sure::of(self.changes[change], look) {
                Sure::Yes => values = vec![value],
                Sure::Perhaps if !values.contains(&value) => values.push(value),
                Sure::Perhaps | Sure::No => {}
            }
        }
        values
    }

    /// The permitted answers of a check of a lease.
    pub(crate) fn checking(&self, lease: &Opened, look: Span) -> Permitted {
        let mut permitted = Permitted { codes: Vec::new(), may_go_on: true };
        permitted.add(Code::DeviceDisconnected, self.ended(lease.process, look));
        if permitted.may_go_on {
            let (may_open, may_not) = self.rights(lease.process, lease.name, look);
            let revoked = if may_not { Sure::Perhaps } else { Sure::No };
            permitted.add(Code::Permission, if may_open { revoked } else { Sure::Yes });
        }
        if permitted.may_go_on {
            permitted.add(Code::DeviceDisconnected, self.lease_over(lease, look));
        }
        permitted
    }

    /// The certainty that the server of a lease is not there any more.
    pub(crate) fn lease_over(&self, lease: &Opened, look: Span) -> Sure {
        of_one(lease.mounts.iter().map(|mount| {
            let renewed = self.mounts[*mount].renewed.iter().map(|change| self.changes[*change]);
            let renewed = renewed.map(|renewed| match renewed {
                renewed if renewed.is_before(lease.at) => Sure::No,
                renewed if lease.at.is_before(renewed) => Sure::of(renewed, look),
                // The lease may be of the server that was there by then.
                renewed => Sure::of(renewed, look).min(Sure::Perhaps),
            });
            renewed.max().unwrap_or(Sure::No).max(self.gone(*mount, look))
        }))
    }

    /// The permitted answers of an operation whose descriptor is over.
    pub(crate) fn over(&self, file: &Opened, look: Span) -> Permitted {
        let mut permitted = Permitted { codes: Vec::new(), may_go_on: true };
        permitted.add(Code::Driver, Sure::of_any(file.closed, look));
        if permitted.may_go_on {
            permitted.add(Code::DeviceDisconnected, self.ended(file.process, look));
        }
        if permitted.may_go_on {
            permitted.add(Code::Permission, self.revoked(file, look));
        }
        if permitted.may_go_on {
            let gone = of_one(file.mounts.iter().map(|mount| self.gone(*mount, look)));
            permitted.add(Code::DeviceDisconnected, gone);
        }
        permitted
    }

    fn revoked(&self, file: &Opened, look: Span) -> Sure {
        let of_name = self.processes[file.process].rights.iter();
        let of_name = of_name.filter(|(name, ..)| *name == file.name);
        let changes: Vec<_> =
            of_name.map(|(_, is_allowed, change)| (*is_allowed, self.changes[*change])).collect();
        let revoked = changes.iter().filter(|(is_allowed, _)| !is_allowed).map(|(_, revoked)| {
            // A file that was opened during the revocation was opened before it, or not at all;
            // unless the mount was allowed again by then.
            let again = changes.iter().any(|(is_allowed, change)| {
                *is_allowed && change.began > revoked.ended && change.can_be_seen_by(file.at)
            });
            match Sure::of(*revoked, look) {
                _ if revoked.is_before(file.at) => Sure::No,
                sure if file.at.is_before(*revoked) || !again => sure,
                sure => sure.min(Sure::Perhaps),
            }
        });
        revoked.max().unwrap_or(Sure::No)
    }

    /// The permitted failures of a server that was asked within a span.
    pub(crate) fn failing(&self, mounts: &[usize], look: Span) -> Permitted {
        let mut permitted = Permitted::default();
        for mount in mounts {
            let mut may_answer = true;
            for (crash, back) in &self.mounts[*mount].crashes {
                let crash = self.changes[*crash];
                let back = back.map(|back| self.changes[back]);
                if !crash.can_be_seen_by(look) || back.is_some_and(|back| back.is_before(look)) {
                    continue;
                }
                permitted.codes.push(Code::DeviceDisconnected);
                if crash.is_before(look) {
                    may_answer &= back.is_some_and(|back| back.can_be_seen_by(look));
                } else {
                    permitted.codes.push(Code::ServiceUnavailable);
                }
            }
            permitted.may_go_on |= may_answer;
        }
        permitted
    }

    /// True if a server has crashed since a moment, and before another one.
    pub(crate) fn has_crashed(&self, mounts: &[usize], since: u64, look: Span) -> bool {
        mounts.iter().any(|mount| {
            let mut crashes = self.mounts[*mount].crashes.iter().map(|(crash, _)| *crash);
            crashes.any(|crash| {
                let crash = self.changes[crash];
                crash.began > since && crash.is_before(look)
            })
        })
    }
}
