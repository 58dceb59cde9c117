//! The ways in which a described server can be reached, and the places of values in each.
//!
//! The words of a command come from the description, so their forms are checked: none is read as an
//! option of the runner, and a version is exactly one version.

use std::collections::BTreeMap;

use narthex_model::command::narthex;

pub use super::slot::WayKind;
use super::{
    bundle::{self, BundleServer, BundleSource},
    document::{Argument, Input, NamedInput, Package, Readable, Remote, ServerDocument},
    inputs::Question,
    runtime,
    slot::{Place, Slot},
    words::{self, image, npm_name, npm_version, one_version, other_index, pypi_name},
};

/// A way to reach a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Way {
    pub kind: WayKind,
    /// The package with its version, or the address.
    pub target: String,
    pub(super) form: Form,
    /// The places of values, in the order of the command's words.
    pub(super) slots: Vec<Slot>,
}

/// The fixed part of a way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Program {
        command: &'static str,
        /// The words in front of the runtime's arguments.
        first: Vec<String>,
        /// The package or the image.
        package: String,
    },
    /// A bundle that is not here yet.
    Bundle(BundleSource),
    /// A bundle that is unpacked on this machine.
    Unpacked(Box<BundleServer>),
    /// The address is the place [`Place::Url`].
    Remote,
}

/// A part of a description that narthex cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// The part, such as `mcpb`.
    pub what: String,
    /// The reason, as a sentence without its subject.
    pub why: String,
}

/// The ways that narthex can use, the preferred one first: packages in the publisher's order, then
/// remote servers. Also the parts that it cannot use.
#[must_use]
pub fn ways(server: &ServerDocument) -> (Vec<Way>, Vec<Unusable>) {
    let (mut usable, mut unusable) = (Vec::new(), Vec::new());
    let unread = || "has a form that this version of narthex cannot read".to_owned();
    for package in &server.packages {
        let (what, made) = match package {
            Readable::Read(package) => (package.registry_type.clone(), of_package(package)),
            Readable::Unread(_) => ("a package".to_owned(), Err(unread())),
        };
        match made {
            Ok(way) => usable.push(way),
            Err(why) => unusable.push(Unusable { what, why }),
        }
    }
    for remote in &server.remotes {
        let (what, made) = match remote {
            Readable::Read(remote) => (remote.kind.clone(), of_remote(remote)),
            Readable::Unread(_) => ("a remote".to_owned(), Err(unread())),
        };
        match made {
            Ok(way) => usable.push(way),
            Err(why) => unusable.push(Unusable { what, why }),
        }
    }
    // The older transport is the last choice of a publisher who has both.
    usable.sort_by_key(|way| way.kind == WayKind::Sse);
    (usable, unusable)
}

impl Way {
    /// The values that a user can give, each name once.
    #[must_use]
    pub fn questions(&self) -> Vec<Question> {
        let mut all: Vec<Question> = match &self.form {
            Form::Unpacked(server) => server.questions().cloned().collect(),
            Form::Program { .. } | Form::Bundle(_) | Form::Remote => Vec::new(),
        };
        for question in self.slots.iter().flat_map(Slot::questions) {
            match all.iter_mut().find(|known| known.name == question.name) {
                Some(known) => {
                    known.is_required |= question.is_required;
                    known.is_secret |= question.is_secret;
                    known.can_be_secret &= question.can_be_secret;
                    known.is_repeated &= question.is_repeated;
                }
                None => all.push(question),
            }
        }
        all
    }

    /// The bundle that has to be unpacked first.
    #[must_use]
    pub fn bundle(&self) -> Option<&BundleSource> {
        match &self.form {
            Form::Bundle(source) => Some(source),
            Form::Program { .. } | Form::Unpacked(_) | Form::Remote => None,
        }
    }

    /// The way with its bundle on this machine. Variables that the manifest sets are the bundle's.
    #[must_use]
    pub fn with_server(mut self, server: BundleServer) -> Self {
        let is_free = |slot: &Slot| !matches!(&slot.place, Place::Env(name) if server.sets(name));
        self.slots.retain(is_free);
        self.form = Form::Unpacked(Box::new(server));
        self
    }
}

impl Slot {
    /// The name of the value in `--set`.
    pub(super) fn name(&self) -> &str {
        match &self.place {
            Place::Env(name) | Place::Header(name) => name,
            Place::Flag { name, .. } | Place::Word { name, .. } => name,
            Place::Url => "url",
        }
    }

    /// The variables that the publisher's value has, by name.
    pub(super) fn variables(&self) -> BTreeMap<&str, &Input> {
        let Some(value) = &self.input.value else { return BTreeMap::new() };
        let all = self.input.variables.iter().map(|(name, input)| (name.as_str(), input));
        all.filter(|(name, _)| value.contains(&format!("{{{name}}}"))).collect()
    }

    fn questions(&self) -> Vec<Question> {
        let can_be_secret = matches!(self.place, Place::Env(_) | Place::Header(_));
        let with = |question: Question| Question {
            can_be_secret,
            is_repeated: self.is_repeated,
            // A secret as a whole, if the publisher calls the value with its variables one.
            is_secret: question.is_secret || (self.input.is_secret && self.input.value.is_some()),
            ..question
        };
        if self.input.value.is_none() {
            return vec![with(Question::of(self.name(), self.place.words(), &self.input))];
        }
        let of = |(name, input): (&str, &Input)| {
            with(Question::of(name, format!("a part of {}", self.place.words()), input))
        };
        self.variables().into_iter().map(of).collect()
    }
}

impl Place {
    /// The place for people.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Env(name) => format!("the variable `{name}`"),
            Self::Header(name) => format!("the header `{name}`"),
            Self::Flag { name, .. } => format!("the argument `{name}`"),
            Self::Word { name, .. } => format!("the argument `{name}`"),
            Self::Url => "the address".to_owned(),
        }
    }
}

fn of_package(package: &Package) -> Result<Way, String> {
    if package.transport.kind != "stdio" {
        let add = narthex("mcp add NAME --url URL", &[]);
        return Err(format!(
            "its program serves `{}` on this machine, which narthex does not start: start it \
             yourself, then add its address with `{add}`",
            package.transport.kind
        ));
    }
    let add = narthex("mcp add NAME -- COMMAND", &[]);
    match package.registry_type.as_str() {
        "npm" => npm(package),
        "pypi" => pypi(package),
        "oci" => oci(package),
        "mcpb" => mcpb(package),
        _ => Err(format!(
            "is a kind of package that narthex does not start: install it, then add its program \
             with `{add}`"
        )),
    }
}

fn npm(package: &Package) -> Result<Way, String> {
    let name = npm_name(&package.identifier)?;
    let version = npm_version(package.version.as_deref())?;
    let mut first = vec!["-y".to_owned()];
    if let Some(url) = other_index(package.registry_base_url.as_deref(), "npmjs")? {
        first.push(format!("--registry={url}"));
    }
    let slots = arguments(WayKind::Npm, package)?;
    let form = Form::Program { command: "npx", first, package: format!("{name}@{version}") };
    Ok(Way { kind: WayKind::Npm, target: format!("{name} {version}"), form, slots })
}

fn pypi(package: &Package) -> Result<Way, String> {
    let name = pypi_name(&package.identifier)?;
    let version = one_version(package.version.as_deref())?;
    let mut first = Vec::new();
    if let Some(url) = other_index(package.registry_base_url.as_deref(), "pypi")? {
        first.push(format!("--default-index={url}"));
    }
    let form = Form::Program { command: "uvx", first, package: format!("{name}=={version}") };
    let slots = arguments(WayKind::Pypi, package)?;
    Ok(Way { kind: WayKind::Pypi, target: format!("{name} {version}"), form, slots })
}

fn oci(package: &Package) -> Result<Way, String> {
    let image = image(&package.identifier)?;
    let after_host = image.rsplit('/').next().unwrap_or(image);
    let image = match (after_host.contains(['@', ':']), package.version.as_deref()) {
        (true, _) => image.to_owned(),
        (false, version) => format!("{image}:{}", one_version(version)?),
    };
    if image.ends_with(":latest") {
        return Err("has the tag `latest`, which is another image tomorrow".to_owned());
    }
    let command =
        if package.runtime_hint.as_deref() == Some("podman") { "podman" } else { "docker" };
    let first = ["run", "-i", "--rm"].map(str::to_owned).to_vec();
    let slots = arguments(WayKind::Oci, package)?;
    let form = Form::Program { command, first, package: image.clone() };
    Ok(Way { kind: WayKind::Oci, target: image, form, slots })
}

fn mcpb(package: &Package) -> Result<Way, String> {
    let source = bundle::source(&package.identifier, package.file_sha256.as_deref())?;
    let target = source.url.to_string();
    let slots = arguments(WayKind::Mcpb, package)?;
    Ok(Way { kind: WayKind::Mcpb, target, form: Form::Bundle(source), slots })
}

fn of_remote(remote: &Remote) -> Result<Way, String> {
    let kind = match remote.kind.as_str() {
        "streamable-http" => WayKind::Http,
        "sse" => WayKind::Sse,
        _ => return Err("is a transport that narthex does not know".to_owned()),
    };
    let address = Input {
        value: Some(remote.url.clone()),
        variables: remote.variables.clone(),
        ..Input::default()
    };
    let mut slots = vec![Slot { place: Place::Url, input: address, is_repeated: false }];
    for NamedInput { name, input } in &remote.headers {
        words::header(name)?;
        let mut input = input.clone();
        for (variable, of_remote) in &remote.variables {
            input.variables.entry(variable.clone()).or_insert_with(|| of_remote.clone());
        }
        slots.push(Slot { place: Place::Header(name.clone()), input, is_repeated: false });
    }
    Ok(Way { kind, target: remote.url.clone(), form: Form::Remote, slots })
}

/// The places of a package's values: arguments in their order, then variables. The words in front
/// of the package and the names of variables are checked.
fn arguments(kind: WayKind, package: &Package) -> Result<Vec<Slot>, String> {
    let slot = |argument: &Argument, is_first: bool, index: usize| {
        let place = match &argument.name {
            Some(name) if argument.kind == "named" => Place::Flag { name: name.clone(), is_first },
            _ => {
                let hint = argument.value_hint.clone().or_else(|| argument.name.clone());
                let name = hint.unwrap_or_else(|| format!("argument-{}", index + 1));
                Place::Word { name, is_first }
            }
        };
        let mut input = argument.input.clone();
        if matches!(place, Place::Flag { .. }) && is_bare(&input) {
            input.value = Some(String::new());
        }
        Slot { place, input, is_repeated: argument.is_repeated }
    };
    let first = package.runtime_arguments.iter().enumerate().map(|(n, one)| slot(one, true, n));
    let rest = package.package_arguments.iter().enumerate().map(|(n, one)| slot(one, false, n));
    let variable = |named: &NamedInput| Slot {
        place: Place::Env(named.name.clone()),
        input: named.input.clone(),
        is_repeated: false,
    };
    let variables = package.environment_variables.iter().map(variable);
    let mut slots = first.chain(rest).chain(variables).collect();
    runtime::checked(kind, &mut slots)?;
    for slot in &slots {
        if let Place::Env(name) = &slot.place {
            let add = narthex("mcp add NAME -- COMMAND", &[]);
            words::variable(name).map_err(|rule| {
                format!(
                    "has the variable `{name}`, which {rule}; if you trust it, add its command \
                     with `{add}`"
                )
            })?;
        }
    }
    Ok(slots)
}

/// True if nothing is said of a flag's value: it is a flag without one, as other clients read it.
fn is_bare(input: &Input) -> bool {
    let Input { description, format, value, default, placeholder, choices, .. } = input;
    let texts = [description, format, value, default, placeholder];
    texts.iter().all(|text| text.is_none()) && choices.is_empty() && !input.is_secret
}

#[cfg(test)]
mod tests;
