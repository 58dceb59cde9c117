//! Carries out a plan in the shim. Steps that can fail are prepared first; the child does the rest
//! between fork and exec.

use std::ffi::{OsStr, OsString};
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
    path_beneath_rules,
};
use rustix::fs::MemfdFlags;
use rustix::io::FdFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;

use super::plan::{Paths, Plan, Privileges};
use super::{base, bubble, filter, privileges};
use crate::proc;

/// A confinement that is ready to be put on.
pub(crate) struct Ready {
    ruleset: Option<RulesetCreated>,
    filters: Vec<BpfProgram>,
    /// The filters as files, for `bwrap`.
    files: Vec<OwnedFd>,
    limits: Vec<(Resource, u64)>,
    privileges: Privileges,
    wrapper: Option<(OsString, Vec<OsString>)>,
}

impl Ready {
    /// Opens and compiles the parts that the plan needs. The error is a text.
    pub(crate) fn make(plan: &Plan, working_dir: Option<&OsStr>) -> Result<Self, String> {
        let landlock = |error: RulesetError| format!("Landlock refuses the rules: {error}");
        let is_wrapped = plan.bwrap.is_some();
        let filters = filter::programs(plan)
            .map_err(|error| format!("the system-call filter cannot be created: {error}"))?;
        let paths = plan.files.as_ref().filter(|_| !is_wrapped);
        let mut ready = Self {
            ruleset: ruleset(paths, plan.ports.as_deref()).map_err(landlock)?,
            filters,
            files: Vec::new(),
            limits: limits(plan),
            // `bwrap` needs its own, and takes them away from the child.
            privileges: if is_wrapped { Privileges::All } else { plan.privileges },
            wrapper: None,
        };
        if let Some(bwrap) = &plan.bwrap {
            let files: io::Result<Vec<OwnedFd>> =
                std::mem::take(&mut ready.filters).iter().map(as_file).collect();
            ready.files = files.map_err(|error| {
                format!("the file of a system-call filter cannot be created: {error}")
            })?;
            let numbers: Vec<i32> = ready.files.iter().map(AsRawFd::as_raw_fd).collect();
            let kept = privileges::kept(plan.privileges);
            let kept = kept.map_err(|error| format!("privileges cannot be read: {error}"))?;
            let arguments = bubble::arguments(plan, working_dir, &numbers, kept);
            ready.wrapper = Some((bwrap.clone(), arguments));
        }
        Ok(ready)
    }

    /// The program and the arguments that come before the child's own command.
    pub(crate) fn wrapper(&mut self) -> Option<(OsString, Vec<OsString>)> {
        self.wrapper.take()
    }

    /// Puts it on, for good, on the process that calls this and all that it becomes.
    pub(crate) fn put_on(&mut self) -> io::Result<()> {
        for (resource, most) in &self.limits {
            lower(*resource, *most)?;
        }
        for file in &self.files {
            rustix::io::fcntl_setfd(file, FdFlags::empty())?;
        }
        // Taken before privileges are given up for good, which the kernel asks for.
        let keeps_all = self.privileges == Privileges::All;
        if self.ruleset.is_some() || !self.filters.is_empty() || !keeps_all {
            rustix::thread::set_no_new_privs(true)?;
        }
        if !keeps_all {
            let kept = privileges::kept(self.privileges)?;
            let inheritable = CapabilitySet::empty();
            let sets = CapabilitySets { effective: kept, permitted: kept, inheritable };
            rustix::thread::clear_ambient_capability_set()?;
            rustix::thread::set_capabilities(None, sets)?;
        }
        if let Some(ruleset) = self.ruleset.take() {
            ruleset.restrict_self().map_err(io::Error::other)?;
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

/// The rules for files and ports; `None` if nothing is limited. The kernel must enforce the plan's
/// limits; further limits of newer kernels are taken where they exist.
fn ruleset(
    paths: Option<&Paths>,
    ports: Option<&[u16]>,
) -> Result<Option<RulesetCreated>, RulesetError> {
    let mut ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    if paths.is_none() && ports.is_none() {
        return Ok(None);
    }
    if paths.is_some() {
        ruleset = ruleset.handle_access(AccessFs::from_all(ABI::V3))?;
    }
    if ports.is_some() {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    ruleset = ruleset.set_compatibility(CompatLevel::BestEffort);
    if paths.is_some() {
        ruleset = ruleset.handle_access(AccessFs::from_all(ABI::V5))?;
        // The daemon and other servers are out of reach of its signals.
        ruleset = ruleset.scope(Scope::from_all(ABI::V6))?;
    }
    let mut created = ruleset.create()?;
    if let Some(paths) = paths {
        created = allow_paths(created, paths)?;
    }
    for port in ports.unwrap_or_default() {
        created = created.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    Ok(Some(created))
}

fn allow_paths(created: RulesetCreated, paths: &Paths) -> Result<RulesetCreated, RulesetError> {
    let (read, all) = (AccessFs::from_read(ABI::V5), AccessFs::from_all(ABI::V5));
    let device = AccessFs::from_file(ABI::V3) & !AccessFs::Execute;
    created
        .add_rules(path_beneath_rules(&paths.base_read, read))?
        .add_rules(path_beneath_rules(&paths.base_write, all))?
        .add_rules(path_beneath_rules([&paths.temporary], all))?
        .add_rules(path_beneath_rules(&paths.read, read))?
        .add_rules(path_beneath_rules(&paths.write, all))?
        .add_rules(base::DEVICES.iter().filter_map(|path| {
            let file = PathFd::new(path).ok()?;
            Some(Ok::<_, RulesetError>(PathBeneath::new(file, device)))
        }))
}

fn limits(plan: &Plan) -> Vec<(Resource, u64)> {
    let limits = plan.limits;
    let pairs = [
        // The address space is not limited: runtimes reserve far more of it than they use.
        (Resource::Data, limits.memory_mb.map(|mib| mib.saturating_mul(1 << 20))),
        (Resource::Nofile, limits.open_files),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Nproc, limits.processes.map(|more| more.saturating_add(tasks_of_user()))),
    ];
    pairs.into_iter().filter_map(|(resource, most)| Some((resource, most?))).collect()
}

/// Lowers a limit; a lower one stays.
fn lower(resource: Resource, most: u64) -> io::Result<()> {
    let now = getrlimit(resource);
    let least = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let new = Rlimit { current: least(now.current), maximum: least(now.maximum) };
    setrlimit(resource, new).map_err(io::Error::from)
}

/// The processes and threads of this user now: the system counts no less than all of them.
fn tasks_of_user() -> u64 {
    let user = rustix::process::getuid().as_raw().to_string();
    let of_user = |status: &String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        line.and_then(|line| line.split_ascii_whitespace().next()) == Some(user.as_str())
    };
    let threads = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Threads:"))?;
        line.trim().parse::<u64>().ok()
    };
    let all = proc::processes().unwrap_or_default();
    let statuses = all
        .iter()
        .filter_map(|process| fs_err::read_to_string(format!("/proc/{}/status", process.id)).ok());
    statuses.filter(of_user).filter_map(threads).sum()
}

/// A filter as `bwrap` reads it: the instructions as the kernel takes them.
fn as_file(filter: &BpfProgram) -> io::Result<OwnedFd> {
    let memory = rustix::fs::memfd_create(c"filter", MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(memory.as_fd().try_clone_to_owned()?);
    for step in filter {
        file.write_all(&step.code.to_ne_bytes())?;
        file.write_all(&[step.jt, step.jf])?;
        file.write_all(&step.k.to_ne_bytes())?;
    }
    file.rewind()?;
    Ok(memory)
}
