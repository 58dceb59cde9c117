//! Tests of the store in a file, in the clear and under the keys of a keychain.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn key() -> GrantKey {
    GrantKey { workspace: "w".to_owned(), server: "a".to_owned(), user: None }
}

/// E135.
#[tokio::test]
async fn e31_the_file_is_private_and_another_process_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sign-ins.json");
    let store = FileStore::new(&path);
    assert!(store.grant(key()).await.unwrap().is_none());
    assert!(!path.exists(), "reading writes nothing");
    let facts = GrantFacts { issuer: "https://as.example".to_owned(), ..Default::default() };
    let put = store.put_grant(key(), Secret::new("s3cret"), facts.clone()).await.unwrap();
    let mode = fs_err::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let read = FileStore::new(&path).grant(key()).await.unwrap().unwrap();
    assert_eq!((read.value.expose(), read.generation), ("s3cret", put.generation));
    assert_eq!(read.facts, facts);
    assert_eq!(store.grants("w".to_owned(), None).await.unwrap(), [(key(), facts)]);
}

/// E135.
#[tokio::test]
async fn e31_a_file_that_is_none_of_ours_stays_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sign-ins.json");
    fs_err::write(&path, "not ours: s3cret").unwrap();
    let error = FileStore::new(&path).grant(key()).await.unwrap_err().to_string();
    assert!(error.contains("sign-ins.json") && !error.contains("s3cret"), "{error}");
    assert_eq!(fs_err::read_to_string(&path).unwrap(), "not ours: s3cret");
}

#[tokio::test]
async fn oauth_c23_two_stores_of_one_file_give_one_lease() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sign-ins.json");
    let (one, other) = (FileStore::new(&path), FileStore::new(&path));
    one.put_grant(key(), Secret::new("v"), GrantFacts::default()).await.unwrap();
    let taken = one.lease(key(), "one".to_owned(), 60_000).await.unwrap();
    assert!(matches!(taken, LeaseOutcome::Taken(_)));
    let held = other.lease(key(), "other".to_owned(), 60_000).await.unwrap();
    assert!(matches!(held, LeaseOutcome::Held { .. }));
}

/// E136: servers that store at the same moment lose no write.
#[tokio::test]
async fn e136_writes_at_the_same_moment_are_all_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sign-ins.json");
    let (one, other) = (FileStore::new(&path), FileStore::new(&path));
    let of = |server: String| GrantKey { server, ..key() };
    for round in 0..8 {
        let (a, b) = (of(format!("a{round}")), of(format!("b{round}")));
        let facts = GrantFacts::default;
        let (first, second) = tokio::join!(
            one.put_grant(a, Secret::new("v"), facts()),
            other.put_grant(b, Secret::new("v"), facts()),
        );
        first.unwrap();
        second.unwrap();
    }
    assert_eq!(one.grants("w".to_owned(), None).await.unwrap().len(), 16);
}

/// E31: a reading waits neither for a writer nor for another reading.
#[tokio::test]
async fn e31_a_reading_does_not_wait_for_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sign-ins.json");
    let store = FileStore::new(&path);
    store.put_grant(key(), Secret::new("v"), GrantFacts::default()).await.unwrap();
    let writer = narthex_private::open_or_create(&beside(&path)).unwrap();
    writer.file().lock().unwrap();
    let within = std::time::Duration::from_secs(60);
    let read = tokio::time::timeout(within, store.grant(key())).await.expect("it waits");
    assert_eq!(read.unwrap().unwrap().value.expose(), "v");
    let listed = tokio::time::timeout(within, store.grants("w".to_owned(), None)).await;
    assert_eq!(listed.expect("it waits").unwrap().len(), 1);
}

/// A keychain whose program stores its text in a file.
struct FakeKeychain(tempfile::TempDir);

impl FakeKeychain {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn kept(&self) -> PathBuf {
        self.0.path().join("kept")
    }

    /// A store in a file, whose key this keychain has.
    fn store(&self, path: &Path) -> FileStore {
        let program = |text: &str| {
            let line = format!("K='{}'; {text}", self.kept().display());
            ["sh", "-c", &line].map(str::to_owned).to_vec()
        };
        let (give, keep) = ("if test -e \"$K\"; then cat \"$K\"; fi", "cat >\"$K\"");
        let keychain = KeyCommand::new(program(give), program(keep));
        FileStore::sealed(path, Arc::new(keychain))
    }
}

async fn value(store: &FileStore) -> Option<String> {
    let row = store.grant(key()).await.unwrap();
    row.map(|row| row.value.expose().to_owned())
}

/// E31, S27: the tokens are sealed under a key that the keychain has, and another process with the
/// keychain reads them. A reading makes no key.
#[tokio::test]
async fn e31_a_file_is_sealed_under_a_key_of_the_keychain() {
    let (folder, keychain) = (tempfile::tempdir().unwrap(), FakeKeychain::new());
    let path = folder.path().join("sign-ins");
    let store = keychain.store(&path);
    assert_eq!(value(&store).await, None);
    assert!(!keychain.kept().exists(), "a reading makes no key");
    store.put_grant(key(), Secret::new("s3cret"), GrantFacts::default()).await.unwrap();
    let text = fs_err::read_to_string(&path).unwrap();
    assert!(!text.contains("s3cret") && !text.contains("generation"), "{text}");
    let made = fs_err::read_to_string(keychain.kept()).unwrap();
    assert!(!text.contains(made.trim()));
    assert_eq!(fs_err::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(value(&keychain.store(&path)).await.as_deref(), Some("s3cret"));
    assert!(!format!("{store:?}").contains(made.trim()));
}

/// E31: without its key the file is not used, and not replaced either.
#[tokio::test]
async fn e31_a_sealed_file_without_its_key_stays_as_it_is() {
    let (folder, keychain) = (tempfile::tempdir().unwrap(), FakeKeychain::new());
    let path = folder.path().join("sign-ins");
    let put = async |store: &FileStore| {
        let put = store.put_grant(key(), Secret::new("v"), GrantFacts::default()).await;
        put.map(drop).map_err(|error| error.to_string())
    };
    put(&keychain.store(&path)).await.unwrap();
    let before = fs_err::read(&path).unwrap();
    let plain = put(&FileStore::new(&path)).await.unwrap_err();
    assert!(plain.contains("sealed under a key in a keychain"), "{plain}");
    let other = FakeKeychain::new();
    let absent = put(&other.store(&path)).await.unwrap_err();
    assert!(absent.contains("has no key"), "{absent}");
    assert!(!other.kept().exists(), "no key is made that opens nothing");
    put(&other.store(&folder.path().join("another"))).await.unwrap();
    let foreign = put(&other.store(&path)).await.unwrap_err();
    assert!(foreign.contains("another key"), "{foreign}");
    fs_err::write(keychain.kept(), "not a key").unwrap();
    let broken = put(&keychain.store(&path)).await.unwrap_err();
    assert!(broken.contains("keychain") && !broken.contains("not a key"), "{broken}");
    assert_eq!(fs_err::read(&path).unwrap(), before);
}

/// E31: a file in the clear is read, and sealed by the next write, even by one that changes
/// nothing.
#[tokio::test]
async fn e31_a_file_in_the_clear_is_sealed_by_the_next_write() {
    let (folder, keychain) = (tempfile::tempdir().unwrap(), FakeKeychain::new());
    let path = folder.path().join("sign-ins");
    let plain = FileStore::new(&path);
    plain.put_grant(key(), Secret::new("s3cret"), GrantFacts::default()).await.unwrap();
    let store = keychain.store(&path);
    assert_eq!(value(&store).await.as_deref(), Some("s3cret"));
    let other = GrantKey { server: "b".to_owned(), ..key() };
    assert!(!store.drop_grant(other, None).await.unwrap());
    assert!(!fs_err::read_to_string(&path).unwrap().contains("s3cret"));
    assert_eq!(value(&store).await.as_deref(), Some("s3cret"));
}

/// E136: of two processes that store at the same moment, one makes the key.
#[tokio::test]
async fn e136_two_first_writes_make_one_key() {
    let (folder, keychain) = (tempfile::tempdir().unwrap(), FakeKeychain::new());
    let path = folder.path().join("sign-ins");
    let (one, two) = (keychain.store(&path), keychain.store(&path));
    let of = |server: &str| GrantKey { server: server.to_owned(), ..key() };
    let facts = GrantFacts::default;
    let (first, second) = tokio::join!(
        one.put_grant(of("a"), Secret::new("v"), facts()),
        two.put_grant(of("b"), Secret::new("v"), facts()),
    );
    first.unwrap();
    second.unwrap();
    let all = keychain.store(&path).grants("w".to_owned(), None).await.unwrap();
    assert_eq!(all.len(), 2);
}
