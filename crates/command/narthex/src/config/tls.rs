//! The settings of the door's TLS, and of the certificates that commands trust.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
};

use narthex_model::Fingerprint;
use narthex_tls::{PairFiles, SelfSigned, Source};

use super::given::Given;

/// The place of the door's certificate.
#[derive(Debug, Clone, Default)]
pub(crate) enum TlsPlace {
    /// The door serves plain HTTP.
    #[default]
    Nowhere,
    /// Files of the operator.
    Files(PairFiles),
    /// A certificate that is made in the data directory.
    SelfSigned,
}

impl TlsPlace {
    /// The source of the certificate of a listener; `None` if it serves plain HTTP. `hosts` are the
    /// names by which others reach it, with or without a port.
    pub(crate) fn source<'h>(
        &self,
        data: &Path,
        listen: SocketAddr,
        hosts: impl Iterator<Item = &'h str>,
    ) -> Option<Source> {
        match self {
            Self::Nowhere => None,
            Self::Files(files) => Some(Source::Files(files.clone())),
            Self::SelfSigned => {
                let names = names(listen, hosts);
                Some(Source::SelfSigned(SelfSigned { folder: data.to_owned(), names }))
            }
        }
    }
}

/// The names of a self-signed certificate: the loopback ones, the listener's address, and `hosts`.
fn names<'h>(listen: SocketAddr, hosts: impl Iterator<Item = &'h str>) -> Vec<String> {
    let mut names: BTreeSet<String> =
        ["localhost", "127.0.0.1", "::1"].into_iter().map(str::to_owned).collect();
    if !listen.ip().is_unspecified() {
        names.insert(listen.ip().to_string());
    }
    // A certificate can name only ASCII. Other names are written so in `Host` as well.
    names.extend(hosts.map(without_port).filter(|name| !name.is_empty() && name.is_ascii()));
    names.into_iter().collect()
}

/// The name or address of an authority.
fn without_port(host: &str) -> String {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _port)) => address,
        None => host.split_once(':').map_or(host, |(name, _port)| name),
    };
    // One spelling for each address, as the certificate has it.
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_string(),
        Err(_name) => name.to_ascii_lowercase(),
    }
}

/// Reads the place of the certificate.
///
/// # Errors
/// The settings that do not fit together.
pub(super) fn read<'g>(get: impl Fn(&str) -> Option<&'g Given>) -> Result<TlsPlace, String> {
    let file = |path: &str| {
        let given = get(path)?;
        Some((PathBuf::from(given.value.as_str()?), given.source.as_str()))
    };
    let made = get("tls.self_signed").filter(|given| given.value.as_bool() == Some(true));
    let files = (file("tls.cert"), file("tls.key"));
    if let (Some(made), (Some((_, source)), _) | (_, Some((_, source)))) = (made, &files) {
        return Err(format!(
            "{} and {source} exclude each other: give either a certificate with its key, or have \
             one made",
            made.source
        ));
    }
    match files {
        (Some((certificate, _)), Some((key, _))) => {
            let certificate = absolute(certificate);
            Ok(TlsPlace::Files(PairFiles { certificate, key: absolute(key) }))
        }
        (Some((_, source)), None) => Err(format!(
            "{source} needs the private key of the certificate: name its file with --tls-key, \
             NARTHEX_TLS_KEY or `tls.key`"
        )),
        (None, Some((_, source))) => Err(format!(
            "{source} needs the certificate of the key: name its file with --tls-cert, \
             NARTHEX_TLS_CERT or `tls.cert`"
        )),
        (None, None) if made.is_some() => Ok(TlsPlace::SelfSigned),
        (None, None) => Ok(TlsPlace::Nowhere),
    }
}

/// Reads the certificate that a daemon must have.
///
/// # Errors
/// The setting that is no fingerprint.
pub(super) fn fingerprint<'g>(
    get: impl Fn(&str) -> Option<&'g Given>,
) -> Result<Option<Fingerprint>, String> {
    let Some(given) = get("daemon_fingerprint") else { return Ok(None) };
    let read = given.value.as_str().unwrap_or_default().parse();
    read.map(Some).map_err(|error| format!("{} {error}", given.source))
}

/// The daemon leaves no folder, but the path is also shown to people in others.
fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;
    use crate::config::layers::Layers;

    /// The place, and the fingerprint, of a settings file and variables.
    fn layers(file: &str, variables: &[(&str, &str)]) -> Layers {
        let mut layers = Layers::default();
        layers.add_file("narthex.toml", &file.parse::<Table>().unwrap());
        layers.add_environment(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        });
        assert_eq!(layers.faults, Vec::<String>::new());
        layers
    }

    fn read_from(layers: &Layers) -> Result<TlsPlace, String> {
        read(|path| layers.get(path))
    }

    #[test]
    fn the_certificate_is_in_two_files_or_made() {
        let both = "[tls]\ncert = '/a.crt'\nkey = '/a.key'";
        let TlsPlace::Files(files) = read_from(&layers(both, &[])).unwrap() else { panic!() };
        assert_eq!((files.certificate, files.key), ("/a.crt".into(), "/a.key".into()));
        let variable = [("NARTHEX_TLS_CERT", "/b.crt")];
        let TlsPlace::Files(files) = read_from(&layers(both, &variable)).unwrap() else { panic!() };
        assert_eq!(files.certificate, Path::new("/b.crt"));
        let made = read_from(&layers("[tls]\nself_signed = true", &[])).unwrap();
        assert!(matches!(made, TlsPlace::SelfSigned));
        let none = read_from(&layers("[tls]\nself_signed = false", &[])).unwrap();
        assert!(matches!(none, TlsPlace::Nowhere));
    }

    #[test]
    fn settings_of_tls_that_do_not_fit_together_are_named() {
        for (file, variables, words) in [
            ("[tls]\ncert = 'a'", &[][..], ["narthex.toml: `tls.cert`", "--tls-key"]),
            ("", &[("NARTHEX_TLS_KEY", "a")], ["NARTHEX_TLS_KEY", "--tls-cert"]),
            (
                "[tls]\nself_signed = true",
                &[("NARTHEX_TLS_CERT", "a")],
                ["`tls.self_signed`", "NARTHEX_TLS_CERT exclude"],
            ),
        ] {
            let fault = read_from(&layers(file, variables)).unwrap_err();
            assert!(words.iter().all(|word| fault.contains(word)), "{fault}");
        }
        let wrong = layers("daemon_fingerprint = 'AB'", &[]);
        let fault = fingerprint(|path| wrong.get(path)).unwrap_err();
        assert!(fault.starts_with("narthex.toml: `daemon_fingerprint` is not a"), "{fault}");
    }

    #[test]
    fn a_made_certificate_names_each_way_to_the_listener() {
        let of = |listen: &str, hosts: &[&str]| {
            let names = names(listen.parse().unwrap(), hosts.iter().copied());
            names.join(" ")
        };
        assert_eq!(of("127.0.0.1:1", &[]), "127.0.0.1 ::1 localhost");
        assert_eq!(of("0.0.0.0:1", &["A.example:8443", ""]), "127.0.0.1 ::1 a.example localhost");
        let hosts = ["[2001:DB8:0::7]:1", "10.0.0.1", "é.example"];
        assert_eq!(
            of("192.0.2.7:1", &hosts),
            "10.0.0.1 127.0.0.1 192.0.2.7 2001:db8::7 ::1 localhost"
        );
    }
}
