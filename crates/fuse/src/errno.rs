//! The table from codes of the namespace to numbers of the system (D24).

use fuser::Errno;
use narthex_mount::{Code, Failure, VfsError};

/// The number for a code.
pub(crate) fn errno(code: Code) -> Errno {
    match code {
        Code::Timeout => Errno::ETIMEDOUT,
        Code::NotFound => Errno::ENOENT,
        Code::Permission => Errno::EACCES,
        Code::Internal => Errno::EIO,
        Code::Driver => Errno::EREMOTEIO,
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
    errno(error.code())
}

/// A call that its caller gave up.
pub(crate) fn interrupted() -> Failure {
    Failure::new(Code::BrokenPipe, "interrupted", "the caller was interrupted")
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
