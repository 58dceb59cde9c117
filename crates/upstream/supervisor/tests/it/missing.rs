//! Children that cannot be started, and the errors about them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use narthex_model::ErrorKind;
use narthex_supervisor::{BaseEnvironment, Process, ProcessSpec, SpawnError};
use tokio_util::task::TaskTracker;

async fn refusal(spec: ProcessSpec) -> SpawnError {
    let tracker = TaskTracker::new();
    let error = Process::spawn(spec, &tracker).await.expect_err("this cannot start");
    assert!(tracker.is_empty(), "a refused start leaves no task");
    error
}

fn spec(command: impl AsRef<Path>) -> ProcessSpec {
    let path = BaseEnvironment::from_lookup(|name| (name == "PATH").then(|| "/nowhere".into()));
    ProcessSpec::new(command.as_ref().to_str().unwrap(), path)
}

fn file(directory: &Path, content: &str, mode: u32) -> std::path::PathBuf {
    let path = directory.join("program");
    fs_err::write(&path, content).unwrap();
    fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[tokio::test]
async fn a_missing_command_is_named_without_the_path_of_narthex() {
    let error = refusal(spec("npx")).await;
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let said = error.to_string();
    assert!(said.contains("`npx`") && said.contains("Node.js"), "{said}");
    // Callers from outside may see the text.
    assert!(!said.contains("/nowhere"), "{said}");
    let SpawnError::NotFound { path, .. } = error else { panic!("{error:?}") };
    assert_eq!(path.as_deref(), Some("/nowhere"));
}

#[tokio::test]
async fn the_error_of_a_missing_file_does_not_mention_path() {
    let error = refusal(spec("/nowhere/at/all")).await;
    assert!(matches!(error, SpawnError::NotFound { path: None, .. }), "{error:?}");
}

#[tokio::test]
async fn a_missing_interpreter_is_not_a_missing_command() {
    let directory = tempfile::tempdir().unwrap();
    let program = file(directory.path(), "#!/nowhere/python\n", 0o755);
    let error = refusal(spec(&program)).await;
    assert!(
        matches!(&error, SpawnError::InterpreterMissing { file } if *file == program),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_file_without_permission_is_denied() {
    let directory = tempfile::tempdir().unwrap();
    let error = refusal(spec(file(directory.path(), "#!/bin/sh\n", 0o644))).await;
    assert!(matches!(error, SpawnError::PermissionDenied { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Denied);
}

#[tokio::test]
async fn a_missing_working_directory_is_named() {
    let mut spec = spec("/bin/sh");
    spec.working_dir = Some("/nowhere/at/all".into());
    let error = refusal(spec).await;
    assert!(matches!(error, SpawnError::WorkingDirMissing { .. }), "{error:?}");
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[tokio::test]
async fn commands_variables_and_arguments_that_the_system_refuses_are_named() {
    assert!(matches!(refusal(spec("")).await, SpawnError::EmptyCommand));

    let mut with_name = spec("/bin/sh");
    with_name.env = vec![("A=B".into(), String::new())];
    assert!(matches!(refusal(with_name).await, SpawnError::VariableName { .. }));

    let mut with_zero = spec("/bin/sh");
    with_zero.args = vec!["-c".into(), "a\0b".into()];
    let error = refusal(with_zero).await;
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().starts_with("argument 2"), "{error}");
}
