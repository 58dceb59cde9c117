//! The settings of one process.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    net::SocketAddr,
    num::NonZeroU64,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fs_err as fs;
use narthex_client::{
    DaemonOptions, Failure,
    commands::{search::RegistrySettings, version::ReleaseSettings},
    door::{DoorSettings, ListenSetting},
    environment::usual_data,
    settings_files::{SERVERS_FILE, SETTINGS_FILE},
};
use narthex_control::{GrantOptions, Variables};
use narthex_executor::Executors;
use narthex_gateway::{GatewayOptions, Tracer};
use narthex_http::listener::{ServeOptions, Workers};
use narthex_http::{HttpOptions, ReplayLimits, TokenHash};
use narthex_model::{Secret, command::quoted};
use narthex_policy::RunPolicy;
use narthex_telemetry::{LogFormat, TelemetryOptions};
use narthex_wire::Limits;
use toml::{Table, Value};

use super::{
    ConnectionOptions, SignIn, TlsPlace, connections, journal, keys, keys::KeyPlace,
    layers::Layers, oauth, shared_clients, signin, tls, variables,
};
use crate::public_servers::Registry;

/// A gibibyte: five shares of the largest size.
const SHARES_BYTES: u64 = 1 << 30;
/// The setting of the endpoint for traces, and the variable that other programs read as well.
const OTLP_ENDPOINT: &str = "telemetry.otlp_endpoint";
const STANDARD_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The flags of the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    /// The settings file.
    pub(crate) settings: Option<PathBuf>,
    /// The data directory.
    pub(crate) data: Option<PathBuf>,
    /// The address of the daemon.
    pub(crate) daemon_url: Option<String>,
    /// The file of the token that commands send there.
    pub(crate) token_file: Option<PathBuf>,
    /// The file of certificates to trust there.
    pub(crate) ca_file: Option<PathBuf>,
    /// The fingerprint of the only certificate to trust there.
    pub(crate) daemon_fingerprint: Option<String>,
    /// The file of servers.
    pub(crate) config: Option<PathBuf>,
    /// The user's file of servers.
    pub(crate) servers: Option<PathBuf>,
    /// True if the content of the settings file does not count.
    pub(crate) ignores_file: bool,
    /// The address on which HTTP is served.
    pub(crate) listen: Option<String>,
    /// The servers of the local run, as they are named.
    pub(crate) tools: Option<String>,
    /// The file of the door's certificate.
    pub(crate) tls_cert: Option<PathBuf>,
    /// The file of its key.
    pub(crate) tls_key: Option<PathBuf>,
    /// True if the certificate is to be made.
    pub(crate) is_self_signed: bool,
}

/// Limits for the memory of all runs and principals together. Each of them may use a part.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The most bytes of long bodies at MCP endpoints; `None` follows from the longest message.
    pub(crate) body_bytes: Option<usize>,
    /// The most bytes of bodies of the API.
    pub(crate) api_body_bytes: usize,
    /// Largest number of bytes of events that streams store for clients that come back.
    pub(crate) replay_bytes: usize,
    /// The most resources and tasks that are followed, with the streams of changes.
    pub(crate) followed: usize,
    /// The most questions of servers that wait for answers of clients.
    pub(crate) questions: usize,
    /// Largest number of calls of modern clients that wait for answers to legacy servers.
    pub(crate) parked: usize,
}

/// All settings, with their values.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The address on which HTTP is served, if a setting names one.
    pub(crate) listen: Option<ListenSetting>,
    /// The certificate with which HTTP is encrypted.
    pub(crate) tls: TlsPlace,
    /// The daemon that commands work with: its data directory is the one of `up` as well.
    pub(crate) daemon: DaemonOptions,
    /// Named explicitly; `None` means the current folder's.
    pub(crate) config: Option<PathBuf>,
    /// The user's servers, for all projects; `None` without a home directory.
    pub(crate) servers: Option<PathBuf>,
    /// Servers that are put there once.
    pub(crate) default_servers: Option<PathBuf>,
    /// The registry that commands search; `None` for the official one.
    pub(crate) registry_url: Option<String>,
    /// The address of the newest release; `None` for that of the build.
    pub(crate) releases_url: Option<String>,
    /// The PostgreSQL database of the store; `None` means a file in the data directory.
    pub(crate) store_url: Option<Secret>,
    /// The place of the master keys.
    pub(crate) keys: KeyPlace,
    /// The servers of the local run.
    pub(crate) policy: RunPolicy,
    /// The variables of the environment that the catalog may name.
    pub(crate) variables: Variables,
    /// True if clients that support only tools get narthex's tools for the rest.
    pub(crate) synthetic_tools: bool,
    /// The proof required of humans who grant.
    pub(crate) granting: GrantOptions,
    /// The filter of log lines.
    pub(crate) log_filter: String,
    /// The form of the log.
    pub(crate) log_format: LogFormat,
    /// The most sessions of clients at a time.
    pub(crate) sessions_max: usize,
    /// The most connections of clients at a time.
    pub(crate) connections_max: usize,
    /// The most characters of the name of a tool.
    pub(crate) name_length_max: usize,
    /// Largest number of tokens of a result, unless its server sets another.
    pub(crate) output_tokens: Option<NonZeroU64>,
    /// Largest number of bytes of the data that the runs of one workspace share.
    pub(crate) shares_bytes: u64,
    /// Limits for all runs together.
    pub(crate) held: Held,
    /// Limits of the connections to servers.
    pub(crate) connections: ConnectionOptions,
    /// Time that a call may take.
    pub(crate) call_timeout: Duration,
    /// Time that a call of a modern client waits for the answer to a legacy server's question.
    pub(crate) input_timeout: Duration,
    /// The accepted values of `Host` besides narthex's own addresses.
    pub(crate) allowed_hosts: Vec<String>,
    /// The accepted origins.
    pub(crate) allowed_origins: Vec<String>,
    /// Hosts that may be posted to wherever they are.
    pub(crate) post_hosts: Vec<String>,
    /// The sign-in of humans.
    pub(crate) sign_in: SignIn,
    /// The executors of runs.
    pub(crate) executors: Executors,
    /// The endpoint to which traces are sent.
    pub(crate) otlp_endpoint: Option<String>,
    /// Our name in traces.
    pub(crate) service_name: String,
    /// Set once tracing has started.
    pub(crate) tracer: Option<Arc<dyn Tracer>>,
    /// The flag, variable or line of a file that gave each setting, by the path of the setting.
    pub(crate) sources: BTreeMap<&'static str, String>,
}

impl Settings {
    /// The flag, variable or line of a file that gave a setting; `None` for a default.
    #[must_use]
    pub(crate) fn source(&self, path: &str) -> Option<&str> {
        self.sources.get(path).map(String::as_str)
    }

    /// The settings of the door that a service of this daemon may have as well.
    #[must_use]
    pub(crate) fn door(&self) -> DoorSettings {
        let is_tls = !matches!(self.tls, TlsPlace::Nowhere);
        let sources = ["tls.cert", "tls.key", "tls.self_signed"].into_iter();
        let sources = sources.filter(|_| is_tls).filter_map(|path| self.source(path));
        DoorSettings { listen: self.listen.clone(), tls: sources.map(str::to_owned).collect() }
    }

    /// The registry that commands search.
    #[must_use]
    pub(crate) fn registry(&self) -> RegistrySettings {
        let source = self.source("registry").unwrap_or_default().to_owned();
        let proxies = Arc::clone(&self.connections.proxies);
        RegistrySettings { url: self.registry_url.clone(), source, proxies }
    }

    /// The address of the newest release.
    #[must_use]
    pub(crate) fn releases(&self) -> ReleaseSettings {
        let source = self.source("releases").unwrap_or_default().to_owned();
        let proxies = Arc::clone(&self.connections.proxies);
        ReleaseSettings { url: self.releases_url.clone(), source, proxies }
    }

    /// Options for logs and traces.
    #[must_use]
    pub(crate) fn telemetry(&self) -> TelemetryOptions<'_> {
        TelemetryOptions {
            filter: &self.log_filter,
            format: self.log_format,
            has_colours: std::io::stderr().is_terminal(),
            has_times: !journal::has_standard_error(),
            endpoint: self.otlp_endpoint.as_deref(),
            service_name: &self.service_name,
        }
    }

    /// Options for the data plane; `node_id` is of this process alone.
    #[must_use]
    pub(crate) fn gateway_options(&self, node_id: String) -> GatewayOptions {
        GatewayOptions {
            limits: self.daemon.limits,
            node_id,
            call_timeout: self.call_timeout,
            sessions_max: self.sessions_max,
            body_bytes_max: self.held.body_bytes,
            followed_max: self.held.followed,
            questions_max: self.held.questions,
            parked_max: self.held.parked,
            input_timeout: self.input_timeout,
            name_limit: self.name_length_max,
            output_tokens: self.output_tokens,
            synthetic_tools: self.synthetic_tools,
            tracer: self.tracer.clone(),
            ..GatewayOptions::default()
        }
    }

    /// Conditions on HTTP requests at a listener.
    #[must_use]
    pub(crate) fn http_options(&self, listen: SocketAddr, admin: TokenHash) -> HttpOptions {
        let mut allowed_hosts = self.allowed_hosts.clone();
        allowed_hosts.extend(self.sign_in.host().map(str::to_owned));
        let usual = HttpOptions::new(listen);
        HttpOptions {
            allowed_hosts,
            allowed_origins: self.allowed_origins.clone(),
            admin_token: Some(admin),
            public_servers: Some(Arc::new(Registry(self.registry()))),
            api_body_bytes: self.held.api_body_bytes,
            replay: ReplayLimits { total_bytes: self.held.replay_bytes, ..usual.replay },
            ..usual
        }
    }

    /// Limits of HTTP connections, and who serves them.
    #[must_use]
    pub(crate) fn serve_options(&self, workers: Workers) -> ServeOptions {
        let max_connections = self.connections_max;
        ServeOptions { max_connections, workers, ..ServeOptions::default() }
    }
}

pub(crate) fn load(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, Failure> {
    let mut layers = layers_of(flags, env)?;
    let settings = build(&mut layers, flags, env);
    match layers.faults.is_empty() {
        true => settings,
        false => Err(Failure::usage(layers.faults.join("\n"))),
    }
}

/// The settings of the flags and the environment. Of the file only the data directory and the file
/// of servers count, if it is TOML at all.
///
/// # Errors
/// When the flags or the environment are faulty as well.
pub(crate) fn load_without_file(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, Failure> {
    let text = read_file(flags, env).ok().flatten().map(|(_path, text)| text);
    let table = text.and_then(|text| text.parse::<Table>().ok()).unwrap_or_default();
    let place = |key: &str, variable: &str| {
        let path = table.get(key).and_then(Value::as_str);
        // An empty variable counts as absent.
        let is_set = env(variable).is_some_and(|text| !text.is_empty());
        path.filter(|_| !is_set).map(PathBuf::from)
    };
    let flags = Flags {
        data: flags.data.clone().or_else(|| place("data", "NARTHEX_DATA")),
        servers: flags.servers.clone().or_else(|| place("servers", "NARTHEX_SERVERS")),
        ignores_file: true,
        ..flags.clone()
    };
    load(&flags, env)
}

/// The values of the file, the environment and the command line.
///
/// # Errors
/// When there is a file, and it cannot be read.
pub(crate) fn layers_of(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Layers, Failure> {
    let mut layers = Layers::default();
    if let Some((path, text)) = read_file(flags, env)? {
        let name = path.display().to_string();
        let table = text.parse::<Table>().map_err(|error| {
            // Without the line itself, which may hold the password of the store.
            let line = 1 + text[..error.span().map_or(0, |span| span.start)].matches('\n').count();
            Failure::usage(format!("{name} is not valid TOML: line {line}: {}", error.message()))
        })?;
        layers.add_file(&name, &table);
        let whole = absolute(&path)?;
        let pasted = quoted(&whole.to_string_lossy()).into_owned();
        let has_env = layers
            .executors
            .as_ref()
            .is_some_and(|(_, all)| all.values().any(|one| one.get("env").is_some()));
        if has_env && fs::metadata(&path)?.mode() & 0o077 != 0 {
            layers.faults.push(format!(
                "{name} holds values of `executors`, and others can read it; make it private with \
                 `chmod 600 {pasted}`"
            ));
        }
        if layers.get("store.url").is_some() && fs::metadata(&path)?.mode() & 0o077 != 0 {
            layers.faults.push(format!(
                "{name} holds `store.url`, and others can read it; make it private with `chmod \
                 600 {pasted}`, or set {} instead",
                super::STORE_URL
            ));
        }
    }
    layers.add_environment(env);
    let text = |path: &Option<PathBuf>| Some(path.as_ref()?.to_string_lossy().into_owned());
    layers.add_flag("data", "--data", text(&flags.data));
    layers.add_flag("daemon_url", "--daemon-url", flags.daemon_url.clone());
    layers.add_flag("token_file", "--token-file", text(&flags.token_file));
    layers.add_flag("config", "--config", text(&flags.config));
    layers.add_flag("servers", "--servers", text(&flags.servers));
    layers.add_flag("tools", "--tools", flags.tools.clone());
    layers.add_flag("listen", "--listen", flags.listen.clone());
    layers.add_flag("ca_file", "--ca-file", text(&flags.ca_file));
    let fingerprint = flags.daemon_fingerprint.clone();
    layers.add_flag("daemon_fingerprint", "--daemon-fingerprint", fingerprint);
    layers.add_flag("tls.cert", "--tls-cert", text(&flags.tls_cert));
    layers.add_flag("tls.key", "--tls-key", text(&flags.tls_key));
    let made = flags.is_self_signed.then(|| "true".to_owned());
    layers.add_flag("tls.self_signed", "--tls-self-signed", made);
    Ok(layers)
}

/// The settings file: the named one, or the user's; and true if it is named.
pub(crate) fn settings_file(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Option<(PathBuf, bool)> {
    let named = env("NARTHEX_SETTINGS").filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(named) = flags.settings.clone().or(named) {
        return Some((named, true));
    }
    Some((own_folder(env)?.join(SETTINGS_FILE), false))
}

/// The folder of this user's settings files.
pub(crate) fn own_folder(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let folder = narthex_client::environment::user_folder(env, "XDG_CONFIG_HOME", ".config")?;
    Some(folder.join("narthex"))
}

/// The text of the settings file; `None` if the user has no file, or if it does not count.
fn read_file(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<(PathBuf, String)>, Failure> {
    let file = settings_file(flags, env).filter(|_| !flags.ignores_file);
    let Some((path, is_named)) = file else { return Ok(None) };
    narthex_private::check_named(&path)?;
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if !is_named && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let failure = Failure::from(error);
            let text = &failure.message;
            let of =
                if flags.settings.is_some() || !is_named { "" } else { " of NARTHEX_SETTINGS" };
            let message = format!(
                "the settings file{of} cannot be read: {text}; name another with --settings"
            );
            Err(Failure { message, ..failure })
        }
    }
}

fn build(
    layers: &mut Layers,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, Failure> {
    let text = |path: &str| Some(layers.get(path)?.value.as_str()?.to_owned());
    let number = |path: &str| usize::try_from(layers.get(path)?.value.as_integer()?).ok();
    let duration =
        |path: &str| narthex_client::cli::duration(layers.get(path)?.value.as_str()?).ok();
    let list = |path: &str| {
        let items = layers.get(path).and_then(|given| given.value.as_array());
        let items = items.into_iter().flatten().filter_map(Value::as_str);
        items.map(str::to_owned).collect::<Vec<_>>()
    };
    let usual_gateway = GatewayOptions::default();
    let format = text("log.format");
    let name_length = number("limits.name_length");
    let output_tokens =
        number("limits.output_tokens").and_then(|most| NonZeroU64::new(most as u64));
    let flag = |path: &str| layers.get(path)?.value.as_bool();
    let policy = policy(layers, &list("tools"));
    let variables = variables::read(layers, flags, env);
    let keys = keys::read(layers);
    let (sign_in, sign_in_faults) = sign_in(layers, env);
    let (executors, executor_faults) = executors(layers);
    let proxies = connections::proxies(layers, env);
    let get = |path: &str| layers.get(path);
    let (tls, fingerprint) = (tls::read(get), tls::fingerprint(get));
    let daemon = daemon(layers, &number, flags, env)?;
    let settings = Settings {
        listen: listen(layers),
        tls: tls.clone().unwrap_or_default(),
        daemon: DaemonOptions { fingerprint: fingerprint.clone().unwrap_or_default(), ..daemon },
        config: text("config").map(PathBuf::from),
        servers: match text("servers") {
            Some(path) => Some(absolute(Path::new(&path))?),
            None => usual_servers(env),
        },
        default_servers: text("default_servers").map(PathBuf::from),
        registry_url: text("registry"),
        releases_url: text("releases"),
        store_url: text("store.url").map(Secret::new),
        keys: keys.clone().unwrap_or_default(),
        policy: policy.clone().unwrap_or_default(),
        variables: variables.clone().unwrap_or_default(),
        synthetic_tools: flag("synthetic_tools").unwrap_or(usual_gateway.synthetic_tools),
        granting: granting(flag("grants.require_proof"), duration("grants.request_lifetime")),
        log_filter: text("log.level").unwrap_or_else(usual_log_filter),
        log_format: log_format(format.as_deref()),
        shares_bytes: number("limits.shares_bytes").map_or(SHARES_BYTES, |bytes| bytes as u64),
        held: held(&number),
        sessions_max: number("limits.sessions").unwrap_or(usual_gateway.sessions_max),
        connections_max: number("limits.connections")
            .unwrap_or(ServeOptions::default().max_connections),
        name_length_max: name_length.unwrap_or(usual_gateway.name_limit),
        output_tokens: output_tokens.or(usual_gateway.output_tokens),
        connections: connections::read(layers, proxies.clone().unwrap_or_default()),
        call_timeout: duration("timeouts.call").unwrap_or(usual_gateway.call_timeout),
        input_timeout: duration("timeouts.input").unwrap_or(usual_gateway.input_timeout),
        allowed_hosts: list("http.allowed_hosts"),
        post_hosts: list("outbound.allowed_hosts"),
        allowed_origins: list("http.allowed_origins"),
        sign_in,
        executors,
        otlp_endpoint: text(OTLP_ENDPOINT).or_else(|| standard_endpoint(env)),
        service_name: text("telemetry.service_name").unwrap_or_else(|| "narthex".to_owned()),
        tracer: None,
        sources: sources(layers, env),
    };
    let faults = [policy.err(), variables.err(), keys.err(), proxies.err(), tls.err()];
    let faults = faults.into_iter().chain([fingerprint.err()]).flatten();
    layers.faults.extend(faults.chain(sign_in_faults).chain(executor_faults));
    check(layers, &settings, format.as_deref());
    Ok(settings)
}

/// The endpoint for traces of a standard variable.
fn standard_endpoint(env: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    env(STANDARD_ENDPOINT).filter(|text| !text.is_empty())
}

/// The sources of all settings that are given.
fn sources(
    layers: &Layers,
    env: &dyn Fn(&str) -> Option<String>,
) -> BTreeMap<&'static str, String> {
    let mut sources = layers.sources();
    if standard_endpoint(env).is_some() {
        sources.entry(OTLP_ENDPOINT).or_insert_with(|| STANDARD_ENDPOINT.to_owned());
    }
    sources
}

/// The daemon that commands work with.
fn daemon(
    layers: &Layers,
    number: &impl Fn(&str) -> Option<usize>,
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<DaemonOptions, Failure> {
    let usual = GatewayOptions::default().limits;
    let text = |path: &str| Some(layers.get(path)?.value.as_str()?.to_owned());
    let source = |path: &str, flag: &str| {
        layers.get(path).map_or_else(|| flag.to_owned(), |given| given.source.clone())
    };
    Ok(DaemonOptions {
        data: match text("data") {
            Some(path) => absolute(Path::new(&path))?,
            None => usual_data(env)?,
        },
        daemon_url: text("daemon_url"),
        daemon_url_source: source("daemon_url", "--daemon-url"),
        token_file: text("token_file").map(PathBuf::from),
        token_file_source: source("token_file", "--token-file"),
        ca_file: text("ca_file").map(PathBuf::from),
        fingerprint: None,
        settings: named_file(flags, env)?,
        limits: Limits {
            message_bytes: number("limits.message_bytes").unwrap_or(usual.message_bytes),
        },
    })
}

/// The address that a setting names, with its place.
fn listen(layers: &Layers) -> Option<ListenSetting> {
    let given = layers.get("listen")?;
    let address = given.value.as_str()?.to_owned();
    Some(ListenSetting { address, source: given.source.clone() })
}

/// The settings file of this process, if it is not the user's usual one.
fn named_file(
    flags: &Flags,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<PathBuf>, Failure> {
    let named = settings_file(flags, env).filter(|(_, is_named)| *is_named);
    named.map(|(path, _)| absolute(&path)).transpose()
}

fn held(number: &impl Fn(&str) -> Option<usize>) -> Held {
    let usual = HttpOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let gateway = GatewayOptions::default();
    Held {
        body_bytes: number("limits.body_bytes"),
        api_body_bytes: number("limits.api_body_bytes").unwrap_or(usual.api_body_bytes),
        replay_bytes: number("limits.replay_bytes").unwrap_or(usual.replay.total_bytes),
        followed: number("limits.followed").unwrap_or(gateway.followed_max),
        questions: number("limits.questions").unwrap_or(gateway.questions_max),
        parked: number("limits.parked_calls").unwrap_or(gateway.parked_max),
    }
}

/// Limits of which one holder has half, and whose half must have room for the largest single thing.
fn too_small(settings: &Settings) -> Vec<(&'static str, usize, &'static str)> {
    let twice = settings.daemon.limits.message_bytes.saturating_mul(2);
    let message = "twice `limits.message_bytes`";
    let api = 2 * narthex_http::API_BODY_MAX;
    let Held { body_bytes, api_body_bytes, .. } = settings.held;
    let given = [
        ("limits.body_bytes", body_bytes.unwrap_or(twice), twice, message),
        ("limits.api_body_bytes", api_body_bytes, api, "twice the longest body of the API"),
    ];
    let small = given.into_iter().filter(|(_, given, least, _)| given < least);
    small.map(|(path, _, least, what)| (path, least, what)).collect()
}

fn log_format(format: Option<&str>) -> LogFormat {
    match format {
        Some("json") => LogFormat::Json,
        _ => LogFormat::Text,
    }
}

fn granting(require_proof: Option<bool>, request_lifetime: Option<Duration>) -> GrantOptions {
    let usual = GrantOptions::default();
    GrantOptions {
        require_proof,
        request_lifetime: request_lifetime.unwrap_or(usual.request_lifetime),
    }
}

/// The servers of the local run: all of them, unless the settings name some (E21).
fn policy(layers: &Layers, named: &[String]) -> Result<RunPolicy, String> {
    let Some(given) = layers.get("tools") else { return Ok(RunPolicy::AllAttached) };
    RunPolicy::of(named).map_err(|error| format!("{}: {error}", given.source))
}

/// The sign-in of humans, and the faults of its settings.
fn sign_in(layers: &Layers, env: &dyn Fn(&str) -> Option<String>) -> (SignIn, Vec<String>) {
    let mut faults = Vec::new();
    let given = layers.get("http.public_url");
    let public_url = given.and_then(|given| Some((given.value.as_str()?, given.source.as_str())));
    let providers = layers.oidc.as_ref().map(|(file, table)| (file.as_str(), table));
    let sign_in = signin::read(public_url, providers, env, &mut faults);
    let given = layers.get("oauth.client_metadata_url");
    let document = given.and_then(|given| Some((given.value.as_str()?, given.source.as_str())));
    let sign_in = sign_in.with_client_metadata(document, &mut faults);
    let clients = layers
        .clients
        .as_ref()
        .map(|(file, table)| shared_clients::read(file, table, env, &mut faults));
    let sign_in = sign_in.with_shared_clients(clients.unwrap_or_default());
    let issuers = layers.issuers.as_ref().map(|(file, table)| (file.as_str(), table));
    let door = oauth::read(|path| layers.get(path), issuers, &mut faults);
    let sign_in = sign_in.with_door(door, &mut faults);
    (sign_in, faults)
}

/// The executors of runs, and the faults of their settings.
fn executors(layers: &Layers) -> (Executors, Vec<String>) {
    let mut faults = Vec::new();
    let duration = |text: &str| narthex_client::cli::duration(text).ok();
    let read =
        |(file, table): &(String, Table)| Executors::read(file, table, &duration, &mut faults);
    let executors = layers.executors.as_ref().map(read).unwrap_or_default();
    (executors, faults)
}

/// Checks conditions that the shape of a value does not express.
fn check(layers: &mut Layers, settings: &Settings, format: Option<&str>) {
    let source =
        |path: &str| layers.get(path).map_or_else(String::new, |given| given.source.clone());
    let mut faults = Vec::new();
    if format.is_some_and(|format| !matches!(format, "text" | "json")) {
        faults.push(format!("{} must be `text` or `json`", source("log.format")));
    }
    if let Some(word) = narthex_telemetry::wrong_level(&settings.log_filter) {
        let place = source("log.level");
        faults.push(format!("{place} is `{word}`: write error, warn, info, debug or trace"));
    }
    let confinement = layers.get("confinement").and_then(|given| given.value.as_str());
    if confinement.is_some_and(|word| !matches!(word, "none" | "strict")) {
        faults.push(format!("{} must be `none` or `strict`", source("confinement")));
    }
    let most = narthex_model::QUALIFIED_NAME_MAX;
    if !(64..=most).contains(&settings.name_length_max) {
        faults.push(format!("{} must be from 64 to {most}", source("limits.name_length")));
    }
    for (path, least, what) in too_small(settings) {
        faults.push(format!("{} must be at least {least}, {what}", source(path)));
    }
    layers.faults.append(&mut faults);
}

/// Rows and messages show a person the contents of warnings.
fn usual_log_filter() -> String {
    let level = if std::io::stderr().is_terminal() { "error" } else { "warn" };
    level.to_owned()
}

/// The usual file of the user's servers; `env` looks up variables.
pub(crate) fn usual_servers(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    Some(own_folder(env)?.join(SERVERS_FILE))
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    Ok(std::path::absolute(path)?)
}

#[cfg(test)]
mod tests {
    use narthex_model::ErrorKind;
    use narthex_testkit::shapes::{Grammar, survives};

    use super::*;

    const TOML: Grammar = Grammar {
        brackets: &[("[", "]"), ("{a=", "}"), ("\"\"\"", "\"\"\""), ("[[", "]]\n")],
        prefixes: &["[", "a=", "#"],
        infixes: &[",", ".a", "\n", "=", ".\"\""],
        leaf: "a",
        around: ("x = ", "\n"),
    };
    const KEYS: Grammar = Grammar { around: ("", " = 1\n"), ..TOML };

    /// A settings file of any shape is read within the room of a thread, or refused.
    #[test]
    fn settings_of_any_shape_leave_the_process_alive() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("narthex.toml");
        let test = "config::settings::tests::settings_of_any_shape_leave_the_process_alive";
        survives(test, &[TOML, KEYS], Vec::new, 100_000, move |text| {
            fs::write(&file, text).unwrap();
            let flags = Flags { settings: Some(file.clone()), ..Flags::default() };
            drop(load(&flags, &|_| None));
        });
    }

    /// The author of a settings file decides whom the daemon trusts, and which programs it starts.
    #[test]
    fn settings_that_other_users_may_write_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("narthex.toml");
        fs::write(&file, "").unwrap();
        let read = || {
            let data = Some(folder.path().to_owned());
            let flags = Flags { settings: Some(file.clone()), data, ..Flags::default() };
            load(&flags, &|_| None).map(drop)
        };
        let set = |mode| {
            fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        };
        set(0o644);
        read().unwrap();
        set(0o664);
        let failure = read().unwrap_err();
        assert_eq!(failure.kind, narthex_client::FailureKind::Operation(ErrorKind::Denied));
        assert!(failure.message.contains("chmod go-w"), "{failure}");
    }

    /// S31: the limits of shared resources are settings; a limit whose half has no room for the
    /// largest single item is refused with the smallest permitted value.
    #[test]
    fn s31_limits_of_shared_resources_are_settings() {
        let folder = tempfile::tempdir().unwrap();
        let loaded = |given: &[(&str, &str)]| {
            let flags = Flags { data: Some(folder.path().to_owned()), ..Flags::default() };
            let value = |name: &str| given.iter().find(|(known, _)| *known == name);
            load(&flags, &|name| value(name).map(|(_, value)| (*value).to_owned()))
        };
        let usual = loaded(&[]).unwrap();
        assert_eq!(usual.gateway_options(String::new()).followed_max, 20_000);
        assert_eq!(usual.gateway_options(String::new()).body_bytes_max, None);
        let set = loaded(&[
            ("NARTHEX_LIMITS_MESSAGE_BYTES", "1000000"),
            ("NARTHEX_LIMITS_BODY_BYTES", "2000000"),
            ("NARTHEX_LIMITS_API_BODY_BYTES", "8388608"),
            ("NARTHEX_LIMITS_REPLAY_BYTES", "3000000"),
            ("NARTHEX_LIMITS_FOLLOWED", "40"),
            ("NARTHEX_LIMITS_QUESTIONS", "30"),
        ]);
        let set = set.unwrap();
        let gateway = set.gateway_options(String::new());
        assert_eq!((gateway.body_bytes_max, gateway.followed_max), (Some(2_000_000), 40));
        assert_eq!(gateway.questions_max, 30);
        let http = set.http_options(SocketAddr::from(([127, 0, 0, 1], 0)), TokenHash::of("x"));
        assert_eq!((http.api_body_bytes, http.replay.total_bytes), (8_388_608, 3_000_000));
        for (name, value, wanted) in [
            ("NARTHEX_LIMITS_BODY_BYTES", "134217727", "at least 134217728, twice `limits.message"),
            ("NARTHEX_LIMITS_API_BODY_BYTES", "8388607", "at least 8388608"),
            ("NARTHEX_LIMITS_REPLAY_BYTES", "0", "a whole number above 0"),
            ("NARTHEX_LIMITS_FOLLOWED", "many", "a whole number above 0"),
            (
                "NARTHEX_LIMITS_FOLLOWED",
                "9223372036854775808",
                "a whole number above 0 and at most 9223372036854775807",
            ),
        ] {
            let failure = loaded(&[(name, value)]).unwrap_err();
            assert!(
                failure.message.starts_with(&format!("{name} must be {wanted}")),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn only_the_places_of_a_broken_file_count() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("narthex.toml");
        let loaded = |text: &str, variable: Option<&str>| {
            fs_err::write(&file, text).unwrap();
            let env = |name: &str| match name {
                "HOME" => Some("/home/ada".to_owned()),
                "NARTHEX_DATA" => variable.map(str::to_owned),
                _ => None,
            };
            let flags = Flags { settings: Some(file.clone()), ..Flags::default() };
            assert!(load(&flags, &env).is_err(), "{text}");
            load_without_file(&flags, &env).unwrap()
        };
        let faulty = "data = '/srv/data'\nservers = '/srv/settings.json'\nnosuch = 1\n";
        let settings = loaded(faulty, None);
        assert_eq!(settings.daemon.data, Path::new("/srv/data"));
        assert_eq!(settings.servers.as_deref(), Some(Path::new("/srv/settings.json")));
        assert_eq!(loaded(faulty, Some("/srv/other")).daemon.data, Path::new("/srv/other"));
        let usual = loaded("data = '/srv/data'\n[", None).daemon.data;
        assert!(usual.starts_with("/home/ada"), "{usual:?}");
    }
}
