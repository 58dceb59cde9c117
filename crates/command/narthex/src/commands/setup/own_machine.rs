//! The machine whose files of clients the console may write: that of the daemon's own user.

use std::net::SocketAddr;

use narthex_client::{
    door::local_url,
    environment::{home, program, variable},
};
use narthex_client_files::connect::OwnMachine;

use super::reached;
use crate::{config::Settings, data_dir::DataDir, elsewhere::Elsewhere};

/// The machine of a daemon with this address; `None` if other machines can reach it, or if it runs
/// as another user than the owner of the home folder.
pub(in crate::commands) fn own_machine(
    settings: &Settings,
    data: &DataDir,
    listen: SocketAddr,
) -> Option<OwnMachine> {
    if !listen.ip().is_loopback() {
        return None;
    }
    let mut daemon = reached::daemon(settings);
    for is_tls in [false, true] {
        let url = local_url(listen, is_tls);
        daemon.addresses.push(url.replacen("://127.0.0.1:", "://localhost:", 1));
        daemon.addresses.push(url);
    }
    let machine = OwnMachine {
        home: home(&variable)?,
        variable,
        program: program().to_string_lossy().into_owned(),
        arguments: Elsewhere::of(settings).arguments().ok()?,
        daemon,
        record: data.setup_dir(),
        lock: data.setup_lock_file(),
    };
    machine.is_of_this_user().then_some(machine)
}
