//! Bundles of `narthex add`: the download with its progress, and the plan of a dry run.

use std::{process::ExitCode, sync::Arc};

use narthex_http_client::Proxies;
use narthex_model::Alias;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::ask;
use crate::{
    Context, Failure,
    commands::waiting::{ellipsis, spinner},
    data_dir::DataDir,
    output::{self, harmless},
    public_registry::{
        address::RegistryAddress,
        bundle::{self, BundleRequest, BundleServer, BundleSource, Bundles, Staged},
    },
    stop::stop_signal,
};

const MIB: u64 = 1024 * 1024;

/// A bundle to install.
pub(super) struct Wanted<'w> {
    /// The server's name in the registry.
    pub(super) name: &'w str,
    pub(super) alias: &'w Alias,
    /// Other ways to the server, as the end of a sentence.
    pub(super) others: String,
    pub(super) source: &'w BundleSource,
    pub(super) registry: &'w RegistryAddress,
    pub(super) proxies: Arc<Proxies>,
}

/// Downloads and unpacks a bundle beside its place in the data directory.
///
/// # Errors
/// When the daemon may be on another machine, a signal stops the command, or the bundle cannot be
/// downloaded or used.
pub(super) async fn fetch(
    wanted: Wanted<'_>,
    context: &Context,
) -> Result<(BundleServer, Staged), Failure> {
    if let Some(url) = &context.daemon.daemon_url {
        let text = format!(
            "`{}` comes as a bundle (mcpb), which is unpacked on the machine of its daemon, but {} \
             names the daemon at {url}; run the command on the daemon's own machine and without \
             this address{}",
            wanted.name, context.daemon.daemon_url_source, wanted.others
        );
        return Err(Failure::usage(harmless(&text)));
    }
    let data = DataDir::open(&context.daemon.data)?;
    let staged = Bundles::of(&data).stage(wanted.alias, wanted.source)?;
    let folders = ask::folders()?;
    let stopped = CancellationToken::new();
    let request = BundleRequest {
        source: wanted.source,
        registry: wanted.registry.url(),
        proxies: wanted.proxies,
        home: folders.home.as_deref(),
        stopped: stopped.clone(),
    };
    let what = format!("downloading {} {}", wanted.source.url, ellipsis(context));
    let bar = if context.format.is_quiet() { None } else { spinner() };
    if bar.is_none() && context.format == output::Format::Text {
        output::notice(&harmless(&what));
    }
    let mut progress = |bytes: u64, all: Option<u64>| {
        if let Some(bar) = &bar {
            let all = all.map(|all| format!(" of {}", all.div_ceil(MIB))).unwrap_or_default();
            bar.set_message(harmless(&format!("{what} {}{all} MiB", bytes / MIB)));
        }
    };
    let fetched = {
        let mut fetching = Box::pin(request.fetch(staged, &mut progress));
        let mut signal = stop_signal()?;
        tokio::select! {
            fetched = &mut fetching => fetched,
            () = &mut signal => {
                stopped.cancel();
                // Its end removes the files.
                fetching.await.and_then(|_whole| Err(bundle::stopped()))
            }
        }
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    fetched
}

/// Prints the plan, and downloads nothing. So the command, which is in the bundle, is not known.
pub(super) fn dry_run(
    mut facts: Value,
    source: &BundleSource,
    context: &Context,
) -> Result<ExitCode, Failure> {
    facts["entry"] = Value::Null;
    facts["bundle"] = json!({ "url": source.url.as_str(), "sha256": source.sha256 });
    let sentence = "a dry run downloads nothing, so the command in the bundle is not known yet; \
                    without --dry-run it is shown before it starts";
    output::told(&facts, sentence, context.format)
}
