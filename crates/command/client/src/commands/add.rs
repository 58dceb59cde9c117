//! `narthex add`: adds a server of a registry to the user's settings, after a trial.

mod ask;
mod bundle;
pub(super) mod left;
mod name;
mod remote;
mod trial;

use std::{collections::BTreeMap, process::ExitCode, sync::Arc, time::SystemTime};

use narthex_model::{Alias, ErrorKind, SecretName, command::narthex};
use serde_json::{Value, json};

use self::{
    name::{alias, check_name},
    trial::Trial,
};
use super::{
    running,
    search::{RegistrySettings, not_stored, stored},
    waiting::waiting,
};
use crate::{
    Context, Failure,
    cli::AddServerArgs,
    daemon_client::{DaemonClient, server_path},
    output::{self, age, harmless},
    public_registry::{
        address::RegistryAddress,
        bundle::Staged,
        cache::{Cached, RegistryCache},
        client::{Listing, PublicRegistry},
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

/// A server that was added.
struct Kept {
    entry: Value,
    /// Secrets of an earlier server of this name.
    left_secrets: Vec<String>,
    tried: trial::Tried,
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
    let client = match args.dry_run || !running::is_up(&context)? {
        true => None,
        false => Some(free(&alias, &context).await?),
    };
    let proxies = Arc::clone(&settings.proxies);
    let chosen = choose(&args, &context, settings).await?;
    let way = way(&args, &chosen)?;
    remote::check(&way, chosen.address.url()).await?;
    if context.format.is_text() {
        describe(&chosen, &way);
    }
    let (way, staged) = match way.bundle() {
        None => (way, None),
        Some(source) if args.dry_run => {
            return bundle::dry_run(facts(&alias, &chosen), source, &context);
        }
        Some(source) => {
            let wanted = bundle::Wanted {
                name: &args.name,
                alias: &alias,
                others: others(&chosen),
                source,
                registry: &chosen.address,
                proxies,
            };
            let (server, staged) = Box::pin(bundle::fetch(wanted, &context)).await?;
            (way.with_server(server), Some(staged))
        }
    };
    let answers = ask::answers(&args, &way, &context).await?;
    let draft = way.draft(&answers, &ask::folders()?).map_err(|faults| {
        let details = json!({ "errors": faults });
        let text = format!("`{}` cannot be added: {}", args.name, faults.join("; "));
        Failure::new(ErrorKind::Invalid, harmless(&text)).with_details(Some(details))
    })?;
    if args.dry_run {
        return dry_run(&alias, &chosen, &draft, &context);
    }
    ask::confirm(&args, &alias, &draft, &context).await?;
    let client = match client {
        Some(client) => client,
        None => started(&alias, &context).await?,
    };
    let taken = left::taken(&client).await?;
    let names = secret_names(&alias, &draft, &taken);
    let left = left_by_earlier(&alias, &draft, &taken);
    left::tell(&left, &context);
    let entry = draft.entry(&names);
    let secrets = draft.secrets().filter_map(|(of, value)| Some((names.get(of)?, value)));
    let trial = Trial {
        client: &client,
        context: &context,
        alias: &alias,
        entry: entry.clone(),
        secrets: secrets.map(|(name, value)| (name.clone(), value.clone())).collect(),
        keeps_anyway: args.keep_anyway,
    };
    // Dropping this removes the bundle, unless the trial succeeds.
    let placed = staged.map(Staged::place).transpose()?;
    let tried = Box::pin(trial.run()).await?;
    if let Some(placed) = placed {
        placed.keep();
    }
    let kept = Kept { entry, left_secrets: left, tried };
    told(&alias, &chosen, kept, &context)
}

/// As [`free`], of a daemon that is started first.
async fn started(alias: &Alias, context: &Context) -> Result<DaemonClient, Failure> {
    running::ensure(context).await?;
    free(alias, context).await
}

/// The daemon, after a check that it has no server of this name.
async fn free(alias: &Alias, context: &Context) -> Result<DaemonClient, Failure> {
    let client = DaemonClient::operator(&context.daemon)?;
    let asked = client.api_get(server_path(alias.as_str(), ""));
    match waiting("asking the daemon", context, asked).await {
        Ok(_) => {
            let remove = narthex("mcp remove {}", &[alias]);
            let mut text = format!(
                "there is a server `{alias}` already; choose another name with --as, or remove it \
                 first with `{remove}`"
            );
            let named = left::named(&client, alias.as_str(), context).await;
            let left = left::secrets(&client, alias.as_str(), &named).await;
            if let Some(left) = left::sentence(&left) {
                text = format!("{text}. {left}");
            }
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
        let listing = waiting(&format!("asking {address}"), context, asked).await;
        let cached = cache.version(&address, &args.name, version);
        let listing = listing.map_err(|failure| with_offline(failure, cached.as_ref()))?;
        stored(&mut cache, &address, std::slice::from_ref(&listing));
        Chosen { listing, address, seen_at: None }
    };
    let listed = &chosen.listing.listed;
    if listed.status() == ServerStatus::Deleted {
        let text = format!(
            "version {} of `{}` was deleted from the registry{}",
            harmless(&listed.server.version),
            args.name,
            reason(listed.status_message())
        );
        return Err(Failure::new(ErrorKind::NotFound, text));
    }
    Ok(chosen)
}

/// Adds the way to add without the registry, if it gives no answer and an earlier one is stored.
fn with_offline(failure: Failure, cached: Option<&Cached>) -> Failure {
    let is_answer = failure.kind.as_str() == ErrorKind::NotFound.as_str();
    let Some(cached) = cached.filter(|_| !is_answer) else { return failure };
    let age = age(cached.seen_at, SystemTime::now());
    let message = format!("{}; --offline uses the answer stored {age}", failure.message);
    Failure { message, ..failure }
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
    Err(Failure::new(ErrorKind::Invalid, harmless(&text)))
}

/// The ways to a server that are no bundles, as the end of a sentence.
fn others(chosen: &Chosen) -> String {
    let (usable, _) = ways(&chosen.listing.listed.server);
    let others = usable.iter().filter(|way| way.bundle().is_none());
    let mut kinds: Vec<_> = others.map(|way| way.kind.as_str()).collect();
    kinds.dedup();
    match kinds.is_empty() {
        true => String::new(),
        false => format!(", or choose another way with --via: {}", kinds.join(", ")),
    }
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
    if let Some(source) = way.bundle() {
        show("sha256", &source.sha256);
    }
    if listing.listed.status() == ServerStatus::Deprecated {
        let why = reason(listing.listed.status_message());
        output::notice(&format!("warning: its publisher advises against this server{why}"));
    }
}

/// The secrets that have the usual names of this draft's secrets: an earlier `add` that was killed
/// leaves such.
fn left_by_earlier(alias: &Alias, draft: &Draft, taken: &[String]) -> Vec<String> {
    let usual = secret_names(alias, draft, &[]).into_values().map(|name| name.to_string());
    usual.filter(|name| taken.contains(name)).collect()
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
    kept: Kept,
    context: &Context,
) -> Result<ExitCode, Failure> {
    let Kept { entry, left_secrets, tried } = kept;
    let mut data = facts(alias, chosen);
    data["entry"] = entry;
    data["left_secrets"] = json!(left_secrets);
    data["secrets"] = json!(tried.secrets);
    data["trial"] = tried.probe;
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
