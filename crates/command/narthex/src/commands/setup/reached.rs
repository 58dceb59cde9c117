//! The daemon that the clients of a set-up are to reach: its data directory, and its addresses.

use narthex_client::{
    door::{DoorSettings, local_url},
    listeners::USUAL_PORT,
};
use narthex_client_files::plan::OwnDaemon;

use crate::{config::Settings, data_dir::DataDir};

/// The daemon of the settings, running or not.
pub(super) fn daemon(settings: &Settings) -> OwnDaemon {
    let data = DataDir::at(&settings.daemon.data);
    // A file that cannot be read counts as absent: an entry with that address is one more then.
    let running = data.running().ok().flatten().map(|state| state.url);
    let port = data.port().ok().flatten().unwrap_or(USUAL_PORT).get();
    let addresses = addresses(running, &settings.door(), port);
    OwnDaemon { data: settings.daemon.data.clone(), addresses }
}

/// The addresses of the daemon that runs, and of one with these settings: by the number and by the
/// name of this machine.
fn addresses(running: Option<String>, door: &DoorSettings, port: u16) -> Vec<String> {
    let to_come = match &door.listen {
        None => Some(door.url_at(port)),
        Some(listen) => {
            let address = listen.address.parse().ok();
            address.map(|address| local_url(address, door.is_tls()))
        }
    };
    let urls = running.into_iter().chain(to_come);
    let named = urls.flat_map(|url| {
        let by_name = url.replacen("://127.0.0.1:", "://localhost:", 1);
        [url, by_name]
    });
    let mut addresses: Vec<_> = named.collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use narthex_client::door::ListenSetting;

    use super::*;

    #[test]
    fn a_daemon_has_the_address_of_now_and_the_one_to_come() {
        let usual = DoorSettings::default();
        let both = ["http://127.0.0.1:7717", "http://localhost:7717"];
        assert_eq!(addresses(None, &usual, 7717), both);
        let running = Some("https://127.0.0.1:7720".to_owned());
        let four = ["https://127.0.0.1:7720", "https://localhost:7720"];
        assert_eq!(addresses(running, &usual, 7717), [both, four].concat());
        let of = |address: &str| DoorSettings {
            listen: Some(ListenSetting { address: address.to_owned(), source: String::new() }),
            tls: Vec::new(),
        };
        let local = ["http://127.0.0.1:9000", "http://localhost:9000"];
        assert_eq!(addresses(None, &of("0.0.0.0:9000"), 7717), local);
        assert_eq!(addresses(None, &of("narthex.example.com:9000"), 7717), [""; 0]);
    }
}
