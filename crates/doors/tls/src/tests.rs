//! Certificates from files and made here, and handshakes with them.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use fs_err as fs;
use narthex_model::Fingerprint;
use rcgen::{CertificateParams, KeyPair};
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    sync::Notify,
};
use tokio_rustls::{TlsConnector, client};

use super::*;

const DAY: Duration = Duration::from_hours(24);

struct Place {
    folder: TempDir,
    files: PairFiles,
}

impl Place {
    /// A folder with a valid pair.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let files = PairFiles { certificate: at("door.crt"), key: at("door.key") };
        let place = Self { folder, files };
        place.put(&pair(0, 30));
        place
    }

    fn put(&self, (certificate, key): &(String, String)) {
        put(&self.files.certificate, certificate);
        put(&self.files.key, key);
    }

    fn begin(&self) -> Result<Followed, TlsError> {
        Followed::begin(Source::Files(self.files.clone()))
    }

    fn made(&self, names: &[&str]) -> SelfSigned {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        SelfSigned { folder: self.folder.path().to_owned(), names }
    }
}

/// Replaces a file by another, for its user alone.
fn put(path: &Path, text: &str) {
    narthex_private::replace(path, text.as_bytes()).unwrap();
}

/// A certificate for `localhost` and its key. It is valid between these days from now.
fn pair(from: i64, to: i64) -> (String, String) {
    let day = |days: i64| {
        let time = SystemTime::now();
        let length = DAY * u32::try_from(days.unsigned_abs()).unwrap();
        if days < 0 { time - length } else { time + length }
    };
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.not_before = (day(from) - Duration::from_mins(1)).into();
    params.not_after = day(to).into();
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Makes a handshake as a client that trusts the certificate of this file.
async fn connect(
    tls: &ServerTls,
    trusted: &Path,
    versions: &[&'static SupportedProtocolVersion],
    protocol: &[u8],
) -> io::Result<(client::TlsStream<DuplexStream>, TlsStream<DuplexStream>)> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(trusted).unwrap()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let connector = TlsConnector::from(Arc::new(config));
    let (near, far) = duplex(1 << 16);
    let name = ServerName::try_from("localhost").unwrap();
    let (client, server) = tokio::join!(connector.connect(name, near), tls.accept(far));
    Ok((client?, server?))
}

#[tokio::test]
async fn handshakes_are_made_with_both_versions_and_one_protocol() {
    let place = Place::new();
    let followed = place.begin().unwrap();
    let (tls, file) = (followed.tls(), &place.files.certificate);
    for (version, expected) in
        [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)]
    {
        let (client, server) = connect(tls, file, &[version], PROTOCOL).await.unwrap();
        assert_eq!(client.get_ref().1.protocol_version(), Some(expected));
        assert_eq!(server.get_ref().1.alpn_protocol(), Some(PROTOCOL));
    }
    connect(tls, file, &[&TLS13], b"h2").await.unwrap_err();
}

/// The message of the error of a pair of files.
fn refused(place: &Place) -> String {
    place.begin().unwrap_err().to_string()
}

#[test]
fn an_unusable_pair_is_refused_with_its_file_and_remedy() {
    let place = Place::new();
    let (certificate, key) = (&place.files.certificate, &place.files.key);
    let good = pair(0, 30);
    let check = |named: &Path, words: &[&str]| {
        let text = refused(&place);
        assert!(text.contains(&format!("`{}`", named.display())), "{text}");
        for word in words {
            assert!(text.contains(word), "no {word:?} in {text}");
        }
    };
    place.put(&(good.0.clone(), pair(0, 30).1));
    check(key, &["does not belong to the first certificate in", "--tls-key"]);
    place.put(&pair(-30, -1));
    check(certificate, &["expired at 2", "renew it", "--tls-cert"]);
    place.put(&pair(2, 30));
    check(certificate, &["not valid before 2", "clock"]);
    place.put(&(good.1.clone(), good.1.clone()));
    check(certificate, &["holds no certificate in PEM", "--tls-cert"]);
    place.put(&(good.0.clone(), good.0.clone()));
    check(key, &["holds no private key in PEM", "--tls-key"]);
    let damaged = |text: &str| text.replacen("MII", "AAA", 1).replacen("MIG", "AAA", 1);
    place.put(&(damaged(&good.0), good.1.clone()));
    check(certificate, &["cannot be used", "--tls-cert"]);
    place.put(&(good.0.clone(), damaged(&good.1)));
    check(key, &["cannot be used", "--tls-key"]);
    place.put(&good);
    fs::remove_file(key).unwrap();
    check(key, &["the key file", "cannot be read", "--tls-key"]);
    place.put(&good);
    fs::set_permissions(certificate, std::fs::Permissions::from_mode(0o666)).unwrap();
    check(certificate, &["other users can write", "chmod go-w"]);
}

#[test]
fn a_key_that_all_users_can_read_gets_a_warning() {
    let place = Place::new();
    let set = |mode| {
        fs::set_permissions(&place.files.key, std::fs::Permissions::from_mode(mode)).unwrap();
        place.begin().unwrap().source().warning()
    };
    assert_eq!((set(0o600), set(0o640)), (None, None));
    let text = set(0o644).unwrap();
    let remedy = format!("`chmod 600 '{}'`", place.files.key.display());
    assert!(text.contains("0644") && text.contains(&remedy), "{text}");
}

/// Changed files are read once they are quiet, a broken pair is reported once, and the open
/// connections stay.
#[tokio::test(start_paused = true)]
async fn changed_files_are_followed_and_a_broken_pair_is_not_used() {
    let place = Place::new();
    let mut followed = place.begin().unwrap();
    let (first, asked) = (followed.identity().fingerprint(), Notify::new());
    let path = place.files.certificate.clone();
    let both = &[&TLS12, &TLS13][..];
    let (mut near, mut far) = connect(followed.tls(), &path, both, PROTOCOL).await.unwrap();

    let next = pair(0, 60);
    put(&place.files.certificate, &next.0);
    let fault = followed.changed(&asked).await.unwrap_err().to_string();
    let key = place.files.key.display().to_string();
    assert!(fault.contains(&key) && fault.contains("does not belong"), "{fault}");
    assert_eq!(followed.identity().fingerprint(), first);
    {
        let waiting = tokio::time::timeout(100 * LOOK_TIME, followed.changed(&asked));
        assert!(waiting.await.is_err(), "an unchanged broken pair is reported once");
    }
    put(&place.files.key, &next.1);
    let identity = followed.changed(&asked).await.unwrap();
    assert_ne!(identity.fingerprint(), first);
    followed.adopt(identity).unwrap();
    connect(followed.tls(), &path, both, PROTOCOL).await.unwrap();

    // The connection with the old certificate is still open.
    near.write_all(b"still here").await.unwrap();
    near.flush().await.unwrap();
    let mut text = [0; 10];
    far.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"still here");
}

const LOOK_TIME: Duration = Duration::from_secs(5);

#[tokio::test(start_paused = true)]
async fn files_are_read_at_once_on_request() {
    let place = Place::new();
    let mut followed = place.begin().unwrap();
    let asked = Notify::new();
    let began = tokio::time::Instant::now();
    place.put(&pair(0, 60));
    asked.notify_one();
    let identity = followed.changed(&asked).await.unwrap();
    assert_ne!(identity.fingerprint(), followed.identity().fingerprint());
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_self_signed_certificate_is_private_and_reused_until_it_ends() {
    let place = Place::new();
    let made = place.made(&["localhost", "127.0.0.1", "::1"]);
    let now = SystemTime::now();
    let first = made.load(now).unwrap();
    assert_eq!(first.names(), ["localhost", "127.0.0.1", "::1"]);
    for name in ["self-signed.pem", "self-signed.crt"] {
        let mode = fs::metadata(place.folder.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let public = fs::read_to_string(made.certificate_file()).unwrap();
    assert!(!public.contains("PRIVATE"), "{public}");
    let of_file = CertificateDer::from_pem_slice(public.as_bytes()).unwrap();
    assert_eq!(Fingerprint::of(&of_file), first.fingerprint());

    let again = made.load(now + 364 * DAY).unwrap();
    assert_eq!(again.fingerprint(), first.fingerprint());
    assert!(again.ends_soon(now + 364 * DAY) && !again.ends_soon(now));
    let later = made.load(now + 366 * DAY).unwrap();
    assert_ne!(later.fingerprint(), first.fingerprint());

    let tls = ServerTls::new(&later).unwrap();
    // A client's clock is the real one.
    tls.replace(&made.load(now).unwrap()).unwrap();
    connect(&tls, &made.certificate_file(), &[&TLS13], PROTOCOL).await.unwrap();
}

#[test]
fn a_self_signed_certificate_is_made_anew_for_further_names_and_after_damage() {
    let place = Place::new();
    let now = SystemTime::now();
    let load = |names: &[&str]| place.made(names).load(now).unwrap().fingerprint();
    let first = load(&["localhost", "a.example"]);
    assert_eq!(load(&["localhost"]), first);
    let second = load(&["localhost", "b.example"]);
    assert_ne!(second, first);
    let file: PathBuf = place.folder.path().join("self-signed.pem");
    put(&file, "no pair");
    assert_ne!(load(&["localhost"]), second);
    fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let error = place.made(&["localhost"]).load(now).unwrap_err().to_string();
    assert!(error.contains("chmod 600"), "{error}");
}
