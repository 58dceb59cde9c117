//! Errors of starting a child, with their remedies.

use std::io;
use std::path::{Path, PathBuf};

use narthex_model::ErrorKind;
use rustix::io::Errno;
use thiserror::Error;

use crate::{ConfinementFault, ProcessSpec};

/// The reason why a child was not started. No process of it runs.
#[derive(Debug, Error)]
pub enum SpawnError {
    /// The spec names no command.
    #[error("the command is empty: name the program to start")]
    EmptyCommand,
    /// The name of a variable is not valid in an environment.
    #[error("`{name}` cannot be the name of an environment variable")]
    VariableName { name: String },
    /// A text has a zero byte, which the operating system cannot pass on.
    #[error("{place} contains a zero byte, which cannot be passed to a program")]
    ZeroByte { place: String },
    /// No program has this name.
    #[error(
        "command `{command}` was not found{}: {}",
        searched(.path.as_deref()),
        remedy(.command)
    )]
    NotFound {
        command: String,
        /// The PATH that was searched; `None` when the command is itself a path. The error text
        /// leaves this out, since callers from outside may see it.
        path: Option<String>,
    },
    /// The file exists, but the program in its first line does not.
    #[error(
        "`{}` cannot run: the interpreter or loader that it names is missing; install that \
         program", .file.display())]
    InterpreterMissing { file: PathBuf },
    /// This user may not execute the file.
    #[error("command `{command}` may not be executed: check its mode and that of its directories")]
    PermissionDenied {
        command: String,
        #[source]
        source: io::Error,
    },
    /// The file is neither a program nor a script.
    #[error("command `{command}` is not a program for this machine, nor a script with a #! line")]
    NotExecutable {
        command: String,
        #[source]
        source: io::Error,
    },
    /// The working directory does not exist.
    #[error("working directory `{}` does not exist or is not a directory", .path.display())]
    WorkingDirMissing { path: PathBuf },
    /// The machine is out of processes, files or memory.
    #[error(
        "not enough resources to start `{command}`: raise the limits for processes, open files or \
         memory"
    )]
    Exhausted {
        command: String,
        #[source]
        source: io::Error,
    },
    /// Any other refusal of the operating system.
    #[error("could not start `{command}`")]
    Refused {
        command: String,
        #[source]
        source: io::Error,
    },
    /// The shim could not be started.
    #[error(
        "the supervising program `{}` cannot be started: install the narthex-shim of this version \
         there",
        .program.display()
    )]
    Shim {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The shim ended, or was ended, before it could report on the child.
    #[error(
        "the supervising program `{}` ended before it started `{command}`: it must be the \
         narthex-shim of this version",
        .program.display()
    )]
    ShimGone {
        command: String,
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The child cannot be confined as configured.
    #[error("`{command}` was not started, because its `confinement` is not possible: {fault}")]
    Unconfined {
        command: String,
        #[source]
        fault: ConfinementFault,
    },
    /// Another of these errors, whose text contained a secret of the configuration.
    #[error("{text}")]
    Redacted {
        /// The text without the secret.
        text: String,
        kind: ErrorKind,
    },
    /// The thread that starts children does not answer.
    #[error("the thread that starts processes has ended; restart narthex")]
    SpawnerGone,
}

impl SpawnError {
    /// Returns the error's kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EmptyCommand
            | Self::VariableName { .. }
            | Self::ZeroByte { .. }
            | Self::NotExecutable { .. }
            | Self::Unconfined { .. } => ErrorKind::Invalid,
            Self::NotFound { .. }
            | Self::InterpreterMissing { .. }
            | Self::WorkingDirMissing { .. } => ErrorKind::NotFound,
            Self::PermissionDenied { .. } => ErrorKind::Denied,
            Self::Exhausted { .. } => ErrorKind::Exhausted,
            Self::Refused { .. } | Self::Shim { .. } | Self::ShimGone { .. } => {
                ErrorKind::Unavailable
            }
            Self::Redacted { kind, .. } => *kind,
            Self::SpawnerGone => ErrorKind::Bug,
        }
    }

    /// Says which of the possible causes an error of the operating system had. Looks at the file
    /// system, so it may block.
    pub(crate) fn from_io(source: io::Error, spec: &ProcessSpec) -> Self {
        let command = spec.command.clone();
        if let Some(path) = spec.working_dir.as_ref().filter(|path| !path.is_dir()) {
            return Self::WorkingDirMissing { path: path.clone() };
        }
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::missing(spec),
            Some(Errno::ACCESS | Errno::PERM) => Self::PermissionDenied { command, source },
            Some(Errno::NOEXEC | Errno::ISDIR) => Self::NotExecutable { command, source },
            Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                Self::Exhausted { command, source }
            }
            Some(_) | None => Self::Refused { command, source },
        }
    }

    /// An error of starting the shim itself.
    #[cfg(target_os = "linux")]
    pub(crate) fn from_shim(source: io::Error, program: PathBuf, spec: &ProcessSpec) -> Self {
        match Errno::from_io_error(&source) {
            Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                Self::Exhausted { command: spec.command.clone(), source }
            }
            Some(_) | None => Self::Shim { program, source },
        }
    }

    pub(crate) fn unconfined(spec: &ProcessSpec, fault: ConfinementFault) -> Self {
        Self::Unconfined { command: spec.command.clone(), fault }
    }

    /// The file of a command, before anything is started.
    #[cfg(target_os = "linux")]
    pub(crate) fn find(spec: &ProcessSpec) -> Result<PathBuf, Self> {
        let path = spec.search_path();
        locate(spec, path.as_deref().unwrap_or_default().as_ref())
            .ok_or_else(|| Self::missing(spec))
    }

    /// The operating system reports a missing program and a missing interpreter of a script alike.
    /// The existence of the file makes the difference.
    fn missing(spec: &ProcessSpec) -> Self {
        let path = spec.search_path();
        if let Some(file) = locate(spec, path.as_deref().unwrap_or_default().as_ref()) {
            return Self::InterpreterMissing { file };
        }
        let command = spec.command.clone();
        let searched = (!command.contains('/'))
            .then(|| path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default());
        let clean = |text: &str| match &spec.redact {
            Some(redact) => redact(text).into_owned(),
            None => text.to_owned(),
        };
        let (program, places) = (clean(&command), searched.as_deref().map(clean));
        tracing::info!(command = program, path = places, "a program was not found");
        Self::NotFound { command, path: searched }
    }
}

/// Finds the file of a command.
fn locate(spec: &ProcessSpec, path: &Path) -> Option<PathBuf> {
    let base = spec.working_dir.as_deref().unwrap_or(Path::new(""));
    if spec.command.contains('/') {
        let file = base.join(&spec.command);
        return file.is_file().then_some(file);
    }
    std::env::split_paths(path)
        .map(|directory| base.join(directory).join(&spec.command))
        .find(|file| file.is_file())
}

fn searched(path: Option<&str>) -> String {
    match path {
        None => String::new(),
        Some("") => " (PATH is empty)".to_owned(),
        Some(_) => " in PATH".to_owned(),
    }
}

/// The user's remedy for a missing command.
fn remedy(command: &str) -> String {
    if command.contains('/') {
        return "check the path".to_owned();
    }
    let (product, address) = match command {
        "node" | "npm" | "npx" => ("Node.js", "https://nodejs.org"),
        "uv" | "uvx" => ("uv", "https://docs.astral.sh/uv"),
        "python" | "python3" | "pip" | "pip3" => ("Python 3", "https://www.python.org"),
        "pipx" => ("pipx", "https://pipx.pypa.io"),
        "docker" => ("Docker", "https://docs.docker.com/get-docker"),
        "podman" => ("Podman", "https://podman.io"),
        "bun" | "bunx" => ("Bun", "https://bun.sh"),
        "deno" => ("Deno", "https://deno.com"),
        _ => return "install it, or give the full path of the program".to_owned(),
    };
    format!("install {product} ({address}), or give the full path of the program")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_command_names_the_product_and_not_our_path() {
        let error =
            SpawnError::NotFound { command: "npx".into(), path: Some("/usr/bin:/bin".into()) };
        assert_eq!(
            error.to_string(),
            "command `npx` was not found in PATH: install Node.js \
             (https://nodejs.org), or give the full path of the program"
        );
    }

    #[test]
    fn every_known_launcher_has_a_remedy() {
        let generic = remedy("some-server");
        for command in ["npx", "uvx", "node", "python", "python3", "docker"] {
            assert_ne!(remedy(command), generic, "{command}");
        }
        assert_eq!(remedy("./server"), "check the path");
    }
}
