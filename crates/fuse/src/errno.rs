//! The table from codes of the namespace to numbers of the system (D24).

use fuser::Errno;
use narthex_mount::{Code, Failure, VfsError};

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
    let text = "the call of what was written before is under way; read its result first";
    Failure::new(Code::ResourceExhausted, "busy", text)
}

/// Arguments of which nobody has read what came of them, whether that was a call or not.
pub(crate) fn unread(was_called: bool) -> Failure {
    let what = match was_called {
        true => "nobody has what came of the call, or it was given up",
        false => "no call was made, since they are no whole JSON object",
    };
    let text = format!(
        "the arguments were written, and never read: {what}; read from the same descriptor, or \
         open the file to write alone"
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
    use super::*;

    #[test]
    fn each_code_has_a_number_of_its_own() {
        let mut numbers: Vec<i32> = Code::ALL.iter().map(|code| errno(*code).code()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), Code::ALL.len());
    }
}
