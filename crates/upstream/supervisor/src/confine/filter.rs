//! Filters of system calls that no server needs, and of sockets.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use super::plan::{Plan, Sockets};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that change the system, look into other processes, or have opened the kernel to attacks.
const DANGEROUS: [c_long; 50] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Ports of the machine, on the architecture that has such calls.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: [c_long; 3] = [libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_vhangup];
#[cfg(not(target_arch = "x86_64"))]
const ARCHITECTURE: [c_long; 1] = [libc::SYS_vhangup];

/// A bit by which x86-64 has a second number for each call.
const SECOND_NUMBER: c_long = 0x4000_0000;

/// New namespaces are new ways into the kernel.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// The filters that carry out a plan. A call is allowed if all of them allow it.
pub(super) fn programs(plan: &Plan) -> Result<Vec<BpfProgram>, Error> {
    let mut denied = Rules::new();
    let mut programs = Vec::new();
    if plan.filters_system_calls {
        for call in DANGEROUS.into_iter().chain(ARCHITECTURE) {
            deny(&mut denied, call, Vec::new());
        }
        for flag in NAMESPACES {
            let flag = u64::from(flag.unsigned_abs());
            deny(&mut denied, libc::SYS_clone, vec![rule(vec![has(0, flag)?])?]);
        }
        deny(&mut denied, libc::SYS_ioctl, vec![rule(vec![is(1, libc::TIOCSTI)?])?]);
        // Its flags lie in memory, out of a filter's sight. Programs then use the older call.
        let mut absent = Rules::new();
        deny(&mut absent, libc::SYS_clone3, Vec::new());
        programs.push(compile(absent, libc::ENOSYS)?);
    }
    sockets(&mut denied, plan.sockets)?;
    if !plan.has_unix_sockets || plan.sockets == Sockets::None {
        unix_sockets(&mut denied, plan.sockets)?;
    }
    if !denied.is_empty() {
        programs.push(compile(denied, libc::EPERM)?);
    }
    Ok(programs)
}

fn sockets(denied: &mut Rules, sockets: Sockets) -> Result<(), Error> {
    if sockets == Sockets::All {
        return Ok(());
    }
    // A way around every rule on system calls, and ways to the sockets of other processes.
    let ways = [
        libc::SYS_io_uring_setup,
        libc::SYS_pidfd_getfd,
        libc::SYS_process_vm_writev,
        libc::SYS_ptrace,
    ];
    for call in ways {
        deny(denied, call, Vec::new());
    }
    if sockets == Sockets::None {
        deny(denied, libc::SYS_socket, Vec::new());
        return Ok(());
    }
    // Landlock knows TCP. Another protocol over IP, or another family, would pass it by.
    let families = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let others = families.map(|family| is_not(0, family)).into_iter().collect::<Result<_, _>>()?;
    let mut rules = vec![rule(others)?];
    let protocols = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut conditions = vec![is(0, family)?];
        for protocol in protocols {
            conditions.push(is_not(2, protocol)?);
        }
        rules.push(rule(conditions)?);
    }
    deny(denied, libc::SYS_socket, rules);
    // The first data of a connection, which opens it on the way.
    let fast_open = u64::from(libc::MSG_FASTOPEN.unsigned_abs());
    let calls = [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];
    for (call, argument) in calls {
        deny(denied, call, vec![rule(vec![has(argument, fast_open)?])?]);
    }
    Ok(())
}

/// Blocks connections to Unix sockets of other processes, which no rule on files covers. Socket
/// pairs for a program's own children stay, except the kinds that can still send elsewhere.
fn unix_sockets(denied: &mut Rules, sockets: Sockets) -> Result<(), Error> {
    if sockets != Sockets::None {
        deny(denied, libc::SYS_socket, vec![rule(vec![is(0, libc::AF_UNIX)?])?]);
    }
    if sockets == Sockets::All {
        // A way around every rule on system calls.
        deny(denied, libc::SYS_io_uring_setup, Vec::new());
    }
    let datagrams = rule(vec![is(0, libc::AF_UNIX)?, has_type(1, libc::SOCK_DGRAM)?])?;
    deny(denied, libc::SYS_socketpair, vec![datagrams]);
    Ok(())
}

fn deny(rules: &mut Rules, call: c_long, cases: Vec<SeccompRule>) {
    let numbers =
        if cfg!(target_arch = "x86_64") { vec![call, call | SECOND_NUMBER] } else { vec![call] };
    for number in numbers {
        rules.entry(number).or_default().extend(cases.iter().cloned());
    }
}

fn compile(rules: Rules, errno: libc::c_int) -> Result<BpfProgram, Error> {
    let architecture = std::env::consts::ARCH.try_into().map_err(Error::Backend)?;
    let action = SeccompAction::Errno(errno.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, architecture);
    filter.and_then(TryInto::try_into).map_err(Error::Backend)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, Error> {
    SeccompRule::new(conditions).map_err(Error::Backend)
}

fn has(argument: u8, flag: u64) -> Result<SeccompCondition, Error> {
    condition(argument, SeccompCmpOp::MaskedEq(flag), flag)
}

/// The type of a socket, whatever flags come with it.
fn has_type(argument: u8, kind: libc::c_int) -> Result<SeccompCondition, Error> {
    condition(argument, SeccompCmpOp::MaskedEq(0xf), small(kind))
}

fn is(argument: u8, value: impl TryInto<u32>) -> Result<SeccompCondition, Error> {
    condition(argument, SeccompCmpOp::Eq, small(value))
}

fn is_not(argument: u8, value: impl TryInto<u32>) -> Result<SeccompCondition, Error> {
    condition(argument, SeccompCmpOp::Ne, small(value))
}

/// The constants of C are small and positive, of whatever type.
fn small(value: impl TryInto<u32>) -> u64 {
    value.try_into().map_or(u64::MAX, u64::from)
}

fn condition(argument: u8, op: SeccompCmpOp, value: u64) -> Result<SeccompCondition, Error> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, value).map_err(Error::Backend)
}
