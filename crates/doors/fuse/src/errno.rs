//! The table from codes of the namespace to numbers of the system (D24).

use fuser::Errno;
use narthex_vfs::{Code, Failure, VfsError};

/// The number for a code.
fn errno(code: Code) -> Errno {
    match code {
        Code::Timeout => Errno::ETIMEDOUT,
        Code::NotFound => Errno::ENOENT,
        Code::Permission => Errno::EACCES,
        Code::Internal => Errno::EIO,
        Code::Driver => Errno::from_i32(rustix::io::Errno::REMOTEIO.raw_os_error()),
        Code::Invalid => Errno::EINVAL,
        Code::IsDirectory => Errno::EISDIR,
        Code::BrokenPipe => Errno::EPIPE,
        Code::ServiceUnavailable => Errno::EHOSTUNREACH,
        Code::AlreadyMounted => Errno::EEXIST,
        Code::ResourceExhausted => Errno::EBUSY,
        Code::ForceKilled => Errno::ECONNABORTED,
        Code::DeviceDisconnected => Errno::ENODEV,
    }
}

/// The number for an operation that failed.
pub(crate) fn errno_of(error: &VfsError) -> Errno {
    errno_for(&error.failure)
}

/// The number for a failure.
pub(crate) fn errno_for(failure: &Failure) -> Errno {
    match failure.kind.as_str() {
        CANCELLED => Errno::ECANCELED,
        TOO_LARGE => Errno::EFBIG,
        _ => errno(failure.code),
    }
}

const CANCELLED: &str = "cancelled";
const TOO_LARGE: &str = "too_large";

/// A call that its caller gave up.
pub(crate) fn cancelled() -> Failure {
    Failure::new(Code::BrokenPipe, CANCELLED, "the caller was interrupted, and the call cancelled")
}

/// A request that is longer than it may be.
pub(crate) fn too_large(most: usize) -> Failure {
    let text = format!("arguments have at most {most} bytes");
    Failure::new(Code::ResourceExhausted, TOO_LARGE, text)
}

/// A write to a file whose call is under way.
pub(crate) fn busy() -> Failure {
    let text = "the call of the earlier write is still running; read its result first";
    Failure::new(Code::ResourceExhausted, "busy", text)
}

/// The failure for arguments whose outcome was never read, whether they were called or not.
pub(crate) fn unread(was_called: bool) -> Failure {
    let what = match was_called {
        true => "no reader got the result of the call, or the call was cancelled",
        false => "no call was made, since they are not a complete JSON object",
    };
    let text = format!(
        "arguments were written, but the result was never read: {what}; read from the same \
         descriptor, or open the file for writing only"
    );
    Failure::invalid(text)
}

/// A name that is in no list of a server.
pub(crate) fn absent(name: &str) -> Failure {
    let text = format!("there is no `{name}` for this run; list the directory for what there is");
    Failure::new(Code::NotFound, "not_found", text)
}

/// A call that ended with its mount.
pub(crate) fn unmounted() -> Failure {
    Failure::new(Code::DeviceDisconnected, "transport_error", "the folder is being unmounted")
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno as Named;

    use super::*;

    const PAGE: &str = include_str!("../../../../docs/reference/files.md");

    const NUMBERS: [(&str, Named); 13] = [
        ("ETIMEDOUT", Named::TIMEDOUT),
        ("ENOENT", Named::NOENT),
        ("EACCES", Named::ACCESS),
        ("EIO", Named::IO),
        ("EREMOTEIO", Named::REMOTEIO),
        ("EINVAL", Named::INVAL),
        ("EISDIR", Named::ISDIR),
        ("EPIPE", Named::PIPE),
        ("EHOSTUNREACH", Named::HOSTUNREACH),
        ("EEXIST", Named::EXIST),
        ("EBUSY", Named::BUSY),
        ("ECONNABORTED", Named::CONNABORTED),
        ("ENODEV", Named::NODEV),
    ];

    /// The rows of the table of codes: the code and the number.
    fn rows() -> Vec<(&'static str, i32)> {
        let (_, table) = PAGE.split_once("| code | errno | HTTP | means |\n").expect("it is there");
        let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
        let row = |line: &'static str| {
            let cells: Vec<_> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            let [_, code, name, _, _, _] = cells[..] else { panic!("{line}") };
            let number = NUMBERS.iter().find(|(one, _)| *one == name);
            (code, number.unwrap_or_else(|| panic!("`{name}` is no number")).1.raw_os_error())
        };
        rows.map(row).collect()
    }

    /// D24: each code is in the table of the page once, with the number that a program gets.
    #[test]
    fn d24_the_page_lists_each_code_with_its_errno() {
        let failed = |code| errno_for(&Failure::new(code, "kind", "why")).code();
        let mut told = rows();
        let mut given: Vec<_> =
            Code::ALL.iter().map(|code| (code.as_str(), failed(*code))).collect();
        told.sort_unstable();
        given.sort_unstable();
        assert_eq!(told, given);
    }

    #[test]
    fn each_code_has_a_unique_errno() {
        let mut numbers: Vec<i32> = Code::ALL.iter().map(|code| errno(*code).code()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), Code::ALL.len());
    }
}
