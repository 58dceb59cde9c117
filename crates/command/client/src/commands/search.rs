//! `narthex search`: finds servers in a registry, or in its stored answers.

use std::{process::ExitCode, sync::Arc, time::SystemTime};

use narthex_http_client::Proxies;
use narthex_model::{
    ErrorKind, Timestamp,
    command::{CommandLine, narthex},
};
use serde_json::{Value, json};

use super::waiting::waiting;
use crate::{
    Context, Failure,
    cli::{PublicRegistryArgs, SearchArgs},
    output::{self, age, harmless},
    public_registry::{
        address::{OFFICIAL, RegistryAddress},
        cache::RegistryCache,
        client::{Listing, PublicRegistry, WORDS_MAX},
        document::ServerStatus,
        ways::ways,
    },
    table,
};

/// The registry that the settings name, and the way to it.
#[derive(Debug, Clone, Default)]
pub struct RegistrySettings {
    /// Its address; `None` for the official registry.
    pub url: Option<String>,
    /// The variable or setting that gave the address, for messages.
    pub source: String,
    pub proxies: Arc<Proxies>,
}

impl RegistrySettings {
    /// The address of the registry: the flag's, the settings', or the official one.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub fn address(&self, args: &PublicRegistryArgs) -> Result<RegistryAddress, Failure> {
        match (&args.registry, &self.url) {
            (Some(url), _) => RegistryAddress::new(url, "--registry"),
            (None, Some(url)) => RegistryAddress::new(url, &self.source),
            (None, None) => RegistryAddress::new(OFFICIAL, ""),
        }
    }
}

/// A found server, and the time of an answer of the cache.
struct Hit {
    listing: Listing,
    seen_at: Option<SystemTime>,
}

/// Runs the command.
///
/// # Errors
/// When the registry cannot be asked, or no answer of it is stored.
pub async fn run(
    args: SearchArgs,
    context: Context,
    settings: RegistrySettings,
) -> Result<ExitCode, Failure> {
    let words = words_of(&args.words)?;
    let address = settings.address(&args.registry)?;
    let mut cache = RegistryCache::open(&context.daemon.data);
    let (hits, is_cut, unread) = match args.registry.offline {
        true => (offline(&cache, &address, &words), false, 0),
        false => {
            let registry = PublicRegistry::new(address.clone(), settings.proxies)?;
            let asked = registry.search(&words);
            let found = waiting(&format!("asking {address}"), &context, asked).await;
            let found = found.map_err(|failure| with_offline(failure, &cache, &address, &words))?;
            stored(&mut cache, &address, &found.listings);
            let hit = |listing| Hit { listing, seen_at: None };
            (found.listings.into_iter().map(hit).collect(), found.is_cut, found.unread)
        }
    };
    let more = hits.len().saturating_sub(args.limit.get());
    let hits = &hits[..hits.len() - more];
    if context.format.is_json() {
        let items: Vec<_> = hits.iter().map(item).collect();
        output::done(&json!({
            "registry": address.to_string(),
            "items": items,
            "more": more,
            "is_incomplete": is_cut,
            "unread": unread,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    if context.format.is_quiet() {
        for hit in hits {
            output::line(&harmless(&hit.listing.listed.server.name))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    show(hits, &address, &args)?;
    notes(hits.len(), more, is_cut, unread);
    Ok(ExitCode::SUCCESS)
}

/// The words in small letters, each once.
///
/// # Errors
/// When there is no word, or there are too many.
pub fn words_of(given: &[String]) -> Result<Vec<String>, Failure> {
    let mut words: Vec<String> = Vec::new();
    let all = given.iter().flat_map(|text| text.split_whitespace()).map(str::to_lowercase);
    for word in all {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    match words.len() {
        0 => Err(Failure::usage("name at least one word of the server's name")),
        count if count > WORDS_MAX => {
            Err(Failure::usage(format!("{count} words are too many; name at most {WORDS_MAX}")))
        }
        _ => Ok(words),
    }
}

fn offline(cache: &RegistryCache, address: &RegistryAddress, words: &[String]) -> Vec<Hit> {
    let found = cache.search(address, words).into_iter();
    found.map(|one| Hit { listing: one.listing, seen_at: Some(one.seen_at) }).collect()
}

/// Stores answers. A cache that cannot be written fails no command.
pub(super) fn stored(cache: &mut RegistryCache, address: &RegistryAddress, listings: &[Listing]) {
    if let Err(failure) = cache.store(address, listings, SystemTime::now()) {
        let text =
            format!("warning: the answers are not stored for --offline: {}", failure.message);
        output::notice(&text);
    }
}

/// Adds the way to search without the registry, if there are stored answers.
fn with_offline(
    failure: Failure,
    cache: &RegistryCache,
    address: &RegistryAddress,
    words: &[String],
) -> Failure {
    let found = offline(cache, address, words);
    let Some(newest) = found.iter().filter_map(|hit| hit.seen_at).max() else { return failure };
    let age = age(newest, SystemTime::now());
    let servers = output::counted(found.len() as u64, "server");
    let message =
        format!("{}; --offline finds {servers} in the stored answers ({age})", failure.message);
    Failure { message, ..failure }
}

fn show(hits: &[Hit], address: &RegistryAddress, args: &SearchArgs) -> Result<(), Failure> {
    let is_offline = args.registry.offline;
    let none = match is_offline {
        true => format!("No stored answer of {address} matches; search without --offline."),
        false => format!("{address} has no server with these words."),
    };
    let mut header = vec!["name", "version", "ways", "description"];
    if is_offline {
        header.insert(3, "seen");
    }
    let rows: Vec<_> = hits.iter().map(row).collect();
    output::line(&table::render(&header, &rows, &none))?;
    if !hits.is_empty() {
        output::notice(&format!("add one with `{}`", adding(&args.registry)));
    } else if !is_offline {
        output::notice("a registry compares names: try another word of the server's name");
    }
    Ok(())
}

/// The command that adds a found server, from the same registry or its stored answers.
fn adding(registry: &PublicRegistryArgs) -> CommandLine {
    let add = narthex("add NAME", &[]);
    let add = match &registry.registry {
        Some(url) => add.option("--registry", url),
        None => add,
    };
    if registry.offline { add.words(["--offline"]) } else { add }
}

fn row(hit: &Hit) -> Vec<String> {
    let server = &hit.listing.listed.server;
    let (usable, _) = ways(server);
    let mut kinds: Vec<_> = usable.iter().map(|way| way.kind.as_str()).collect();
    kinds.dedup();
    let kinds = if kinds.is_empty() { "-".to_owned() } else { kinds.join(", ") };
    let description = match hit.listing.listed.status() {
        ServerStatus::Active => server.description.clone(),
        other => format!("({}) {}", other.as_str(), server.description),
    };
    let mut cells = vec![harmless(&server.name), harmless(&server.version), kinds];
    cells.extend(hit.seen_at.map(|at| age(at, SystemTime::now())));
    cells.push(harmless(&description));
    cells
}

fn item(hit: &Hit) -> Value {
    let listed = &hit.listing.listed;
    let (usable, unusable) = ways(&listed.server);
    let mut item = json!({
        "name": listed.server.name,
        "version": listed.server.version,
        "title": listed.server.title,
        "description": listed.server.description,
        "publisher": listed.server.publisher(),
        "source": listed.server.source(),
        "website": listed.server.website_url,
        "status": listed.status(),
        "ways": usable.iter().map(|way| way.kind.as_str()).collect::<Vec<_>>(),
        "unusable": unusable.iter().map(|one| &one.what).collect::<Vec<_>>(),
    });
    if let Some(at) = hit.seen_at {
        item["seen_at"] = json!(Timestamp::new(at).to_string());
    }
    item
}

fn notes(shown: usize, more: usize, is_cut: bool, unread: usize) {
    if more > 0 {
        let verb = if more == 1 { "matches" } else { "match" };
        output::notice(&format!("{more} more {verb}; --limit {} shows all", shown + more));
    }
    if is_cut {
        output::notice("the registry has more servers with these words; add a word");
    }
    if unread > 0 {
        let servers = output::counted(unread as u64, "server");
        output::notice(&format!(
            "{servers} of the answer cannot be read by this version of narthex"
        ));
    }
}

/// The failure for a server of which no answer is stored.
pub(super) fn not_stored(name: &str, address: &RegistryAddress) -> Failure {
    let text = format!(
        "no answer of {address} about `{name}` is stored; leave --offline out to ask the registry"
    );
    Failure::new(ErrorKind::NotFound, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_small_letters_and_limited_in_number() {
        let given =
            |texts: &[&str]| words_of(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        assert_eq!(given(&["GitHub issues", "github"]).unwrap(), ["github", "issues"]);
        assert!(given(&[" "]).is_err());
        assert!(given(&["a b c d e f"]).unwrap_err().message.contains("at most 5"));
    }

    /// D36: the command for a found server asks the registry that has it.
    #[test]
    fn d36_a_found_server_is_added_from_the_same_registry() {
        let adding = |registry: Option<&str>, offline| {
            adding(&PublicRegistryArgs { registry: registry.map(str::to_owned), offline })
                .to_string()
        };
        assert_eq!(adding(None, false), "narthex add NAME");
        let other = "narthex add NAME --registry https://registry.example --offline";
        assert_eq!(adding(Some("https://registry.example"), true), other);
    }

    #[test]
    fn the_flag_wins_over_the_settings_and_those_over_the_official_registry() {
        let args = |registry: Option<&str>| PublicRegistryArgs {
            registry: registry.map(str::to_owned),
            offline: false,
        };
        let set = RegistrySettings {
            url: Some("https://set.example".to_owned()),
            source: "NARTHEX_REGISTRY".to_owned(),
            ..RegistrySettings::default()
        };
        let address = |settings: &RegistrySettings, flag| {
            settings.address(&args(flag)).map(|address| address.to_string())
        };
        assert_eq!(address(&set, Some("https://flag.example")).unwrap(), "https://flag.example");
        assert_eq!(address(&set, None).unwrap(), "https://set.example");
        assert_eq!(address(&RegistrySettings::default(), None).unwrap(), OFFICIAL);
        let wrong = RegistrySettings { url: Some("x".to_owned()), ..set };
        assert!(address(&wrong, None).unwrap_err().message.starts_with("NARTHEX_REGISTRY `x`"));
    }
}
