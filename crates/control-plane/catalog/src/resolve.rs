//! Resolves one run of a plan: checks parameters, fills in placeholders, and checks the results by
//! the servers' schemas. Returns every error at once.

use std::collections::BTreeMap;

use narthex_model::{Secret, json::Place};

use crate::{
    fault::{Fault, FaultCode, Faults, Warning},
    fill::{Filler, Found, Openers, RunInputs, Unfilled, meant, misspelt, opened_text, text_of},
    origin,
    plan::{Plan, PlannedServer},
    resolved::{Omitted, ResolvedRun, ResolvedServer, ResolvedTarget, Skipped},
    server::{ServerEntry, Shape, StdioShape, url},
    surroundings::{EnvValue, Surroundings},
    template::Template,
};

pub(crate) mod key;

impl Plan<'_> {
    /// Resolves the configuration of one run. An optional server that cannot be resolved is left
    /// out (D17); any other refuses the run.
    ///
    /// # Errors
    /// All faults: of parameters, of every key of every server, and those of [`Plan::check`]. No
    /// part of a refused run exists.
    pub fn resolve(&self, inputs: RunInputs<'_>) -> Result<ResolvedRun, Faults> {
        let mut faults = self.faults.clone();
        if !self.agent.active {
            let at = origin::agent(&self.agent.name).key("active");
            let message = format!("agent `{}` is disabled", self.agent.name);
            faults.push(Fault::new(at, FaultCode::AgentInactive, message, "set `active` to true"));
        }
        if let Some(schema) = &self.agent.params_schema {
            faults.extend(schema.faults(inputs.params));
        }
        let mut run = ResolvedRun {
            agent: self.agent.name.clone(),
            run_id: inputs.run_id.to_owned(),
            session_id: inputs.session_id.to_owned(),
            servers: BTreeMap::new(),
            skipped: Vec::new(),
            warnings: self.scope_warnings.clone(),
        };
        let mut filler = Filler::new(inputs, self.surroundings);
        for (alias, planned) in &self.servers {
            let mut resolver = Resolver::new(planned, &mut filler, self.surroundings);
            let server = resolver.server(&inputs);
            let Resolver { faults: found, warnings, .. } = resolver;
            match server {
                Some(server) if found.is_empty() => {
                    run.warnings.extend(warnings);
                    run.servers.insert(alias.clone(), server);
                }
                _ if planned.optional => {
                    run.skipped.push(Skipped { alias: alias.clone(), faults: found });
                }
                _ => faults.extend(found),
            }
        }
        match Faults::of_all(faults, &self.surroundings) {
            Some(faults) => Err(faults),
            None => Ok(run),
        }
    }
}

/// Resolves one server.
struct Resolver<'p, 'f, 'i> {
    planned: &'p PlannedServer<'p>,
    filler: &'f mut Filler<'i>,
    surroundings: Surroundings<'p>,
    faults: Vec<Fault>,
    warnings: Vec<Warning>,
    omitted: Vec<Omitted>,
}

impl<'p, 'f, 'i> Resolver<'p, 'f, 'i> {
    fn new(
        planned: &'p PlannedServer<'p>,
        filler: &'f mut Filler<'i>,
        surroundings: Surroundings<'p>,
    ) -> Self {
        let (faults, warnings) = (planned.faults.clone(), planned.warnings.clone());
        Self { planned, filler, surroundings, faults, warnings, omitted: Vec::new() }
    }

    fn server(&mut self, inputs: &RunInputs<'_>) -> Option<ResolvedServer> {
        let entry = self.planned.entry?;
        self.scope(entry, inputs);
        let target = self.target(entry);
        let config = self.config();
        Some(ResolvedServer {
            alias: self.planned.alias.clone(),
            reference: self.planned.reference.clone(),
            target: target?,
            config,
            omitted: std::mem::take(&mut self.omitted),
            settings: entry.settings.clone(),
            tools: self.planned.tools.iter().map(|rules| (*rules).clone()).collect(),
            gates: entry.gates(),
            is_optional: self.planned.optional,
        })
    }

    fn fault(
        &mut self,
        at: &Place,
        key: Option<&str>,
        code: FaultCode,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        let fault = Fault::new(at, code, message, remedy);
        self.faults.push(fault.of(&self.planned.alias, key));
    }

    /// O94: checks the scope against the server's schema.
    fn scope(&mut self, entry: &ServerEntry, inputs: &RunInputs<'_>) {
        for (key, schema) in &entry.scope_schema.keys {
            let at = Place::root("run").key("scope").key(key);
            let wanted = schema.value_type.wanted();
            match inputs.scope.values().get(key).filter(|value| !value.is_null()) {
                None if schema.required => {
                    let message =
                        format!("Missing required value: scope.{key} for '{}'", self.planned.alias);
                    let remedy = match misspelt(inputs.scope.values(), key) {
                        Some(given) => meant(given, key, "scope"),
                        None => format!("give {wanted} as `{key}` in the run's `scope`"),
                    };
                    let code = FaultCode::MissingRequiredMcpConfig;
                    self.fault(&at, Some(key), code, message, remedy);
                }
                Some(value) if schema.value_type.take(value.clone(), true).is_none() => {
                    let message = format!(
                        "scope.{key} has a value that '{}' does not accept",
                        self.planned.alias
                    );
                    let remedy = format!("give {wanted}");
                    self.fault(&at, Some(key), FaultCode::TypeWrong, message, remedy);
                }
                None | Some(_) => {}
            }
        }
    }

    fn target(&mut self, entry: &ServerEntry) -> Option<ResolvedTarget> {
        let at = origin::server(&entry.id);
        let http = |resolver: &mut Self, url: &Template, is_sse| {
            let url = resolver.url(url, &at.key("url"));
            resolver.auth(entry, &at.key("auth"));
            let url = url?;
            Some(ResolvedTarget::Http { url, is_sse, auth: entry.auth.clone() })
        };
        match &entry.shape {
            Shape::Http(shape) => http(self, &shape.url, false),
            Shape::Sse(shape) => http(self, &shape.url, true),
            Shape::Stdio(StdioShape::Command(shape)) => {
                let args = shape.args.iter().enumerate();
                let args: Vec<Template> =
                    args.map(|(i, arg)| self.argument(arg, &at.key("args").index(i))).collect();
                let cwd = shape.cwd.as_ref().map(|cwd| self.argument(cwd, &at.key("cwd")));
                let confinement = shape.confinement.as_ref().map(|confinement| {
                    let fill = |path: &Template, at: &Place| self.argument(path, at);
                    Box::new(confinement.filled(&at.key("confinement"), fill))
                });
                let command = shape.command.clone();
                Some(ResolvedTarget::Command { command, args, cwd, confinement })
            }
            Shape::Stdio(StdioShape::Image { image }) => {
                Some(ResolvedTarget::Image { image: image.clone() })
            }
            Shape::Stdio(StdioShape::Script { script }) => {
                Some(ResolvedTarget::Script { script: script.clone() })
            }
        }
    }

    fn argument(&mut self, template: &Template, at: &Place) -> Template {
        let mut unfilled = Unfilled::default();
        let filled = self.filler.template(template, &mut unfilled);
        self.unfilled(&unfilled, at, "an argument");
        filled
    }

    /// O66: a placeholder without a value refuses the run.
    fn url(&mut self, template: &Template, at: &Place) -> Option<Template> {
        let mut unfilled = Unfilled::default();
        let filler = &*self.filler;
        let filled = url::fill(template, &mut |placeholder| match filler.find(placeholder) {
            Found::Borrowed(value) => Some(text_of(value)),
            Found::Text(text) => Some(text.to_owned()),
            Found::Later => None,
            Found::Missing => {
                unfilled.missing.push(placeholder.clone());
                None
            }
        });
        if !unfilled.missing.is_empty() {
            self.unfilled(&unfilled, at, "the url");
            return None;
        }
        let filled = match filled {
            Ok(filled) => filled,
            Err((placeholder, why)) => {
                let message = format!(
                    "the value of {placeholder} in the url of '{}' {why}",
                    self.planned.alias
                );
                let remedy = "give another value, or change the server's url";
                self.fault(at, None, FaultCode::ValueInvalid, message, remedy);
                return None;
            }
        };
        if let Some(text) = self.known_text(&filled)
            && let Some(why) = url::objection(&text)
        {
            let message = format!("no usable URL for '{}': {why}", self.planned.alias);
            self.fault(at, None, FaultCode::ValueInvalid, message, url::REMEDY);
        }
        Some(filled)
    }

    /// Variables that authentication needs.
    fn auth(&mut self, entry: &ServerEntry, at: &Place) {
        for (field, text) in entry.auth.texts() {
            let mut unfilled = Unfilled::default();
            for placeholder in text.0.placeholders() {
                if matches!(self.filler.find(placeholder), Found::Missing) {
                    unfilled.missing.push(placeholder.clone());
                }
            }
            self.unfilled(&unfilled, &at.key(field), &format!("auth.{field}"));
        }
    }

    fn unfilled(&mut self, unfilled: &Unfilled, at: &Place, what: &str) {
        for placeholder in &unfilled.missing {
            let message = format!(
                "Missing required value: {placeholder} for {what} of '{}'",
                self.planned.alias
            );
            let remedy = self.filler.remedy(placeholder);
            self.fault(at, None, FaultCode::MissingRequiredMcpConfig, message, remedy);
        }
        if unfilled.is_too_long {
            self.too_long(at, None);
        }
    }

    fn too_long(&mut self, at: &Place, key: Option<&str>) {
        let message = "with its placeholders filled in, the value is longer than 65536 bytes, or \
                       all values of the run than 4194304";
        self.fault(at, key, FaultCode::LimitExceeded, message, "use shorter values");
    }

    /// The text as the server will get it, unless the runner has a part in it.
    fn known_text(&self, template: &Template) -> Option<String> {
        opened_text(template, &self.openers(&|name| self.env(name))).ok()
    }

    fn env(&self, name: &str) -> Option<Secret> {
        match (self.surroundings.env)(name) {
            EnvValue::Set(value) => Some(value),
            EnvValue::NotAllowed | EnvValue::Unset => None,
        }
    }

    fn openers<'o>(&self, env: &'o dyn Fn(&str) -> Option<Secret>) -> Openers<'o> {
        Openers { env, runner: &|_| None }
    }
}
