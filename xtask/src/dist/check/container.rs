//! The image in a container of buildah, which reads the archive as any other tool would.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use fs_err as fs;
use serde_json::Value;

use super::place::{Place, config, fixture};
use crate::dist::image::{CONFIG, DATA, Store, USER};

const SERVER: &str = "/usr/bin/narthex-fixture";

/// Starts a container from the archive of the Open Container Initiative, after a look at both.
pub(super) fn started(files: &[PathBuf], version: &str) -> Result<Place> {
    let store = Store::new()?;
    let [oci, docker] = files else { anyhow::bail!("an image has two archives: {files:?}") };
    let healthy = container_of(&store, &format!("docker-archive:{}", docker.display()))?;
    let inspected: Value = serde_json::from_str(&store.run(&["inspect", &healthy])?)?;
    let check = &inspected["Docker"]["config"]["Healthcheck"]["Test"];
    ensure!(check[1] == "narthex", "the image of Docker has the health check {check}");
    let container = container_of(&store, &format!("oci-archive:{}", oci.display()))?;
    let inspected: Value = serde_json::from_str(&store.run(&["inspect", &container])?)?;
    let found = &inspected["OCIv1"]["config"];
    ensure!(found["User"] == format!("{USER}:{USER}"), "the user is {}", found["User"]);
    let label = &found["Labels"]["org.opencontainers.image.version"];
    ensure!(label == version, "the image has the version {label}");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("mcp.json");
    fs::write(&file, config(Path::new(SERVER)))?;
    copy_in(&store, &container, &[&fixture(), Path::new(SERVER)], "0755")?;
    copy_in(&store, &container, &[&file, Path::new(CONFIG)], "0644")?;
    let command = store.buildah(&["run", "--isolation", "chroot", &container, "--"]);
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.push("/usr/bin/narthex".to_owned());
    Ok(Place {
        name: "a container, as user 65532".to_owned(),
        up: words.clone(),
        call: words,
        // buildah ends at once on a signal, and leaves the program to itself.
        has_signals: false,
        config: PathBuf::from(format!("{CONFIG}/mcp.json")),
        data: PathBuf::from(DATA),
        folder: PathBuf::from("/"),
        _guards: vec![Box::new(store), Box::new(folder)],
    })
}

/// A new container of an image, by its name.
fn container_of(store: &Store, image: &str) -> Result<String> {
    let said = store.run(&["from", image])?;
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

/// Copies a file from the first path into the container at the second one.
fn copy_in(store: &Store, container: &str, [from, to]: &[&Path; 2], mode: &str) -> Result<()> {
    let (from, to) = (from.to_string_lossy(), to.to_string_lossy());
    store.run(&["copy", "--chown", "0:0", "--chmod", mode, container, &from, &to])?;
    Ok(())
}
