//! `narthex add`: adds a server of a registry to the user's settings, after a trial.

mod ask;
mod trial;

use std::{collections::BTreeMap, process::ExitCode, time::SystemTime};

use narthex_model::{Alias, ErrorKind, SecretName, command::narthex};
use serde_json::{Value, json};

use self::trial::{Trial, WORKSPACE};
use super::{
    search::{RegistrySettings, not_stored, stored},
    waiting::waiting,
};
use crate::{
    Context, Failure,
    cli::AddServerArgs,
    daemon_client::{DaemonClient, server_path, workspace_path},
    output::{self, age, harmless},
    public_registry::{
        address::RegistryAddress,
        cache::RegistryCache,
        client::{Listing, PublicRegistry, last_part},
        document::ServerStatus,
        entry::Draft,
        ways::{Way, ways},
    },
};

/// The chosen version of a server.
struct Chosen {
    listing: Listing,
    address: RegistryAddress,
    /// The time of the registry's answer, if it is a stored one.
    seen_at: Option<SystemTime>,
}

/// Runs the command.
///
/// # Errors
/// When the server is not found or cannot be used, a value is missing or wrong, or the trial fails.
pub async fn run(
    args: AddServerArgs,
    context: Context,
    settings: RegistrySettings,
) -> Result<ExitCode, Failure> {
    check_name(&args.name)?;
    let alias = alias(&args)?;
    // Before the user answers questions for nothing.
    let client = match args.dry_run {
        true => None,
        false => Some(free(&alias, &context).await?),
    };
    let chosen = choose(&args, &context, settings).await?;
    let way = way(&args, &chosen)?;
    if !context.format.is_json() && !context.format.is_quiet() {
        describe(&chosen, &way);
    }
    let answers = ask::answers(&args, &way, &context).await?;
    let draft = way.draft(&answers, &ask::folders()?).map_err(|faults| {
        let details = json!({ "errors": faults });
        let text = format!("`{}` cannot be added: {}", args.name, faults.join("; "));
        Failure::new(ErrorKind::Invalid, text).with_details(Some(details))
    })?;
    let Some(client) = client else {
        return dry_run(&alias, &chosen, &draft, &context);
    };
    ask::confirm(&args, &alias, &draft, &context).await?;
    let names = secret_names(&alias, &draft, &taken(&client).await?);
    let entry = draft.entry(&names);
    let secrets = draft.secrets().filter_map(|(of, value)| Some((names.get(of)?, value)));
    let trial = Trial {
        client: &client,
        context: &context,
        alias: &alias,
        entry,
        secrets: secrets.map(|(name, value)| (name.clone(), value.clone())).collect(),
        keeps_anyway: args.keep_anyway,
    };
    let tried = Box::pin(trial.run()).await?;
    told(&alias, &chosen, &tried, &context)
}

/// Checks that the name has the form of a registry's names.
fn check_name(name: &str) -> Result<(), Failure> {
    let is_part = |part: &str| {
        let is_sign = |byte: u8| matches!(byte, b'.' | b'_' | b'-');
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_sign(byte))
    };
    match name.split_once('/') {
        Some((publisher, server)) if is_part(publisher) && is_part(server) => Ok(()),
        _ => {
            let search = narthex("search WORDS", &[]);
            Err(Failure::usage(format!(
                "`{name}` is not a name of a registry, such as io.github.ada/weather; find the \
                 name with `{search}`"
            )))
        }
    }
}

/// The server's name here.
fn alias(args: &AddServerArgs) -> Result<Alias, Failure> {
    if let Some(given) = &args.alias {
        return Alias::of_server(given).map_err(|error| Failure::usage(format!("--as: {error}")));
    }
    let derived = alias_of(last_part(&args.name));
    Alias::of_server(&derived).map_err(|error| {
        let text = format!("`{}` gives no name for the server here: {error}", args.name);
        Failure::usage(format!("{text}; choose one with --as"))
    })
}

/// The nearest text with the form of an alias: small letters, and `-` for runs of other characters.
fn alias_of(name: &str) -> String {
    let mut alias = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            'a'..='z' | '0'..='9' => alias.push(c),
            _ if alias.is_empty() || alias.ends_with('-') => {}
            _ => alias.push('-'),
        }
    }
    alias.truncate(64);
    alias.trim_end_matches('-').to_owned()
}

/// The daemon, after a check that it has no server of this name.
async fn free(alias: &Alias, context: &Context) -> Result<DaemonClient, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api_get(server_path(alias.as_str(), ""));
    match waiting("asking the daemon", context, asked).await {
        Ok(_) => {
            let remove = narthex("mcp remove {}", &[alias]);
            let text = format!(
                "there is a server `{alias}` already; choose another name with --as, or remove it \
                 first with `{remove}`"
            );
            Err(Failure::new(ErrorKind::Conflict, text))
        }
        Err(failure) if failure.kind.as_str() == ErrorKind::NotFound.as_str() => Ok(client),
        Err(failure) => Err(failure),
    }
}

/// Reads the version from the registry, or from its stored answers.
async fn choose(
    args: &AddServerArgs,
    context: &Context,
    settings: RegistrySettings,
) -> Result<Chosen, Failure> {
    let address = settings.address(&args.registry)?;
    let version = args.server_version.as_deref().unwrap_or("latest");
    let mut cache = RegistryCache::open(&context.daemon.data);
    let chosen = if args.registry.offline {
        let cached = cache.version(&address, &args.name, version);
        let cached = cached.ok_or_else(|| not_stored(&args.name, &address))?;
        Chosen { listing: cached.listing, address, seen_at: Some(cached.seen_at) }
    } else {
        let registry = PublicRegistry::new(address.clone(), settings.proxies)?;
        let asked = registry.version(&args.name, version);
        let listing = waiting(&format!("asking {address}"), context, asked).await?;
        stored(&mut cache, &address, std::slice::from_ref(&listing));
        Chosen { listing, address, seen_at: None }
    };
    let listed = &chosen.listing.listed;
    if listed.status() == ServerStatus::Deleted {
        let text = format!(
            "version {} of `{}` was deleted from the registry{}",
            listed.server.version,
            args.name,
            reason(listed.status_message())
        );
        return Err(Failure::new(ErrorKind::NotFound, text));
    }
    Ok(chosen)
}

/// The reason of a publisher, as the end of a sentence.
fn reason(message: Option<&str>) -> String {
    message.map_or_else(String::new, |text| format!(": {}", harmless(text)))
}

/// The way of `--via`, or else the preferred one.
fn way(args: &AddServerArgs, chosen: &Chosen) -> Result<Way, Failure> {
    let (usable, unusable) = ways(&chosen.listing.listed.server);
    let is_wanted = |way: &&Way| args.via.as_deref().is_none_or(|via| way.kind.as_str() == via);
    if let Some(way) = usable.iter().find(is_wanted) {
        return Ok(way.clone());
    }
    let text = match (&args.via, usable.as_slice()) {
        (Some(via), [_, ..]) => {
            let mut others: Vec<_> = usable.iter().map(|way| way.kind.as_str()).collect();
            others.dedup();
            format!("`{}` has no way `{via}`; --via takes {}", args.name, others.join(", "))
        }
        _ => {
            let reasons: Vec<_> =
                unusable.iter().map(|one| format!("`{}` {}", one.what, one.why)).collect();
            let website = chosen.listing.listed.server.website_url.as_deref();
            let website = website.map(|url| format!("; its publisher explains at {url} how"));
            let reasons = match reasons.is_empty() {
                true => "its description has neither a package nor an address".to_owned(),
                false => reasons.join("; "),
            };
            let website = website.unwrap_or_default();
            format!("narthex cannot start `{}`: {reasons}{website}", args.name)
        }
    };
    Err(Failure::new(ErrorKind::Invalid, text))
}

/// Shows the publisher, the source and the version.
fn describe(chosen: &Chosen, way: &Way) {
    let Chosen { listing, address, seen_at } = chosen;
    let server = &listing.listed.server;
    let show = |label: &str, text: &str| {
        output::notice(&format!("  {label:<10} {}", harmless(text)));
    };
    output::notice(&harmless(&format!("{} {}", server.name, server.version)));
    if !server.description.is_empty() {
        show("about", &server.description);
    }
    show("publisher", server.publisher());
    show("source", &server.source().unwrap_or_else(|| "not named".to_owned()));
    let registry = match seen_at {
        Some(at) => format!("{address}, as it answered {}", age(*at, SystemTime::now())),
        None => address.to_string(),
    };
    show("registry", &registry);
    show(way.kind.as_str(), &way.target);
    if listing.listed.status() == ServerStatus::Deprecated {
        let why = reason(listing.listed.status_message());
        output::notice(&format!("warning: its publisher advises against this server{why}"));
    }
}

/// The names of secrets that the vault has already.
async fn taken(client: &DaemonClient) -> Result<Vec<String>, Failure> {
    let secrets = client.api_all(&workspace_path(WORKSPACE, "/secrets")).await?;
    let set = secrets.iter().filter(|secret| secret["is_set"] == true);
    let names = set.filter_map(|secret| secret["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

/// New names in the vault for the draft's secrets, by variable or header.
fn secret_names(alias: &Alias, draft: &Draft, taken: &[String]) -> BTreeMap<String, SecretName> {
    let mut names: BTreeMap<String, SecretName> = BTreeMap::new();
    for (of, _) in draft.secrets() {
        let is_taken = |name: &str| {
            let is_ours = names.values().any(|known| known.as_str() == name);
            is_ours || taken.iter().any(|known| known == name)
        };
        let name = SecretName::for_server(alias, of, is_taken);
        names.insert(of.to_owned(), name);
    }
    names
}

/// Prints the entry, and stores nothing.
fn dry_run(
    alias: &Alias,
    chosen: &Chosen,
    draft: &Draft,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let names = secret_names(alias, draft, &[]);
    let entry = draft.entry(&names);
    if context.format.is_json() {
        let mut data = facts(alias, chosen);
        data["entry"] = entry;
        data["secrets"] = json!(names.values().map(SecretName::as_str).collect::<Vec<_>>());
        output::done(&data)?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = serde_json::to_string_pretty(&json!({ alias.as_str(): entry }))
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))?;
    output::json_text(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn facts(alias: &Alias, chosen: &Chosen) -> Value {
    let server = &chosen.listing.listed.server;
    json!({
        "name": alias.as_str(),
        "server": server.name,
        "version": server.version,
        "publisher": server.publisher(),
        "source": server.source(),
        "registry": chosen.address.to_string(),
    })
}

fn told(
    alias: &Alias,
    chosen: &Chosen,
    tried: &trial::Tried,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let mut data = facts(alias, chosen);
    data["secrets"] = json!(tried.secrets);
    data["trial"] = tried.probe.clone();
    data["warnings"] = json!(tried.warnings);
    for warning in &tried.warnings {
        output::notice(&format!("warning: {}", harmless(warning)));
    }
    let server = &chosen.listing.listed.server;
    let tools = match tried.tools {
        Some(1) => ", with 1 tool".to_owned(),
        Some(count) => format!(", with {count} tools"),
        None => String::new(),
    };
    let sentence = format!("added {alias}: {} {}{tools}", server.name, server.version);
    output::told(&data, &sentence, context.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_registries_become_names_of_servers() {
        let table = [
            ("weather", "weather"),
            ("Brave.Search_MCP", "brave-search-mcp"),
            ("-7-", "7"),
            ("a--b__c", "a-b-c"),
        ];
        for (name, alias) in table {
            assert_eq!(alias_of(name), alias);
        }
    }

    #[test]
    fn a_name_of_a_registry_has_a_publisher_and_a_server() {
        for good in ["io.github.ada/weather", "a/b_c.d-e"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["weather", "/a", "a/", "a/b/c", "a b/c", "a/../b", "-"] {
            let message = check_name(bad).unwrap_err().message;
            assert!(message.contains("narthex search WORDS"), "{message}");
        }
    }
}
