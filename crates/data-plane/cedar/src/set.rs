//! Compiling a set of rules.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, atomic::AtomicBool},
};

use cedar_policy::{
    Effect, EntityTypeName, EntityUid, Policy, PolicyId, PolicySet, PrincipalConstraint,
    ResourceConstraint, ValidationMode,
};
use narthex_model::{ToolScope, ToolScopes};
use narthex_policy::Rules;

use crate::{
    RuleFault, RuleFaults, RuleName,
    arguments::{Asked, Kinds},
    bounds,
    fault::{invalid, line_of, suspicious, unreadable},
    further, named,
    part::{self, Part},
    schema,
    typed::Typed,
};

/// Maximum length of a set's text in bytes.
pub const TEXT_MAX: usize = 256 * 1024;
/// Maximum number of rules of a set.
pub const RULES_MAX: usize = 1_000;
/// The longest id of a rule, in bytes, and the longest reason.
const ID_MAX: usize = 100;
const REASON_MAX: usize = 500;
/// Most reported faults: more than a person reads at once.
const FAULTS_MAX: usize = 100;

/// The compiled rules of a workspace.
#[derive(Debug)]
pub struct RuleSet {
    /// The rules in the order of the text.
    pub(crate) rules: Vec<Rule>,
    /// The rules that use no arguments.
    pub(crate) plain: Group,
    /// The rules that use arguments.
    pub(crate) asking: Group,
    /// The names that rules use.
    pub(crate) names: Vec<RuleName>,
    /// The types that rules require of arguments, each once: many rules are about the same ones.
    pub(crate) kinds: Vec<Kinds>,
}

/// A rule of a set.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) id: Arc<str>,
    pub(crate) reason: Arc<str>,
    /// The tool scopes that the rule requires; it forbids if there are none.
    pub(crate) scopes: ToolScopes,
    /// The types that its arguments must have, if it uses some.
    pub(crate) typed: Option<Typed>,
    /// True if the log already has the warning that the rule could not be asked about a call.
    pub(crate) is_told: AtomicBool,
}

/// Rules by the names at their heads, so that rules about other things are not asked: Cedar itself
/// asks every rule.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) by_head: HashMap<Head, Part>,
}

/// The names at the head of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Head {
    /// The agent at the head, if there is one. Agents are in no group.
    pub(crate) principal: Option<EntityUid>,
    pub(crate) resource: HeadResource,
}

/// The resource at the head of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum HeadResource {
    Any,
    Of(EntityTypeName),
    /// A server, or one item of a server.
    One(EntityUid),
}

/// A rule as it is read.
struct Draft<'t> {
    policy: &'t Policy,
    line: usize,
    rule: Rule,
}

impl RuleSet {
    /// Reads and checks rules.
    ///
    /// # Errors
    /// All faults at once, as far as the text can be read. A text that nests too deeply or joins
    /// too many terms has only the first such place as its fault.
    pub fn compile(text: &str) -> Result<Self, RuleFaults> {
        if text.len() > TEXT_MAX {
            let message = format!("the rules are longer than {TEXT_MAX} bytes");
            return Err(RuleFaults(vec![RuleFault::whole(message, "shorten them")]));
        }
        match bounds::fault(text) {
            Some(fault) => Err(RuleFaults(vec![fault])),
            None => bounds::with_room(|| Self::read(text)),
        }
    }

    /// Reads a text that is within its bounds, on a stack with room for it.
    fn read(text: &str) -> Result<Self, RuleFaults> {
        let read = text.parse::<PolicySet>();
        let read = read.map_err(|errors| RuleFaults(cut(unreadable(text, &errors))))?;
        let mut faults = Vec::new();
        if read.templates().next().is_some() {
            let message = "a rule is a template (`?principal` or `?resource`)";
            faults.push(RuleFault::whole(
                message.to_owned(),
                "write the principal or resource itself",
            ));
        }
        if read.num_of_policies() > RULES_MAX {
            let message = format!("there are more than {RULES_MAX} rules");
            return Err(RuleFaults(vec![RuleFault::whole(message, "join some of them")]));
        }
        let ordered = ordered(&read);
        let drafts = drafts(text, &ordered, &mut faults);
        let mut set = Self {
            rules: Vec::new(),
            plain: Group::default(),
            asking: Group::default(),
            names: Vec::new(),
            kinds: Vec::new(),
        };
        for Draft { policy, line, rule } in drafts {
            let kinds = check(policy, &rule, line, &mut faults);
            let kept = match part::shallow(policy) {
                Ok(kept) => kept,
                Err(message) => {
                    let (line, rule) = (Some(line), Some(rule.id.to_string()));
                    let remedy = "use fewer levels, or split it into several rules".to_owned();
                    faults.push(RuleFault { line, rule, message, remedy });
                    continue;
                }
            };
            let of_rule = |of| RuleName { rule: rule.id.clone(), of };
            set.names.extend(named::of(policy).into_iter().map(of_rule));
            let group = if kinds.is_some() { &mut set.asking } else { &mut set.plain };
            group.add(&kept, set.rules.len());
            let typed = kinds.map(|kinds| Typed::of(&kept, set.kinds_number(kinds)));
            set.rules.push(Rule { typed, ..rule });
        }
        set.plain.join();
        set.asking.join();
        if faults.is_empty() { Ok(set) } else { Err(RuleFaults(cut(faults))) }
    }

    fn kinds_number(&mut self, kinds: Kinds) -> usize {
        let known = self.kinds.iter().position(|known| *known == kinds);
        known.unwrap_or_else(|| {
            self.kinds.push(kinds);
            self.kinds.len() - 1
        })
    }

    /// Number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// True if there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules for evaluation at calls; `None` if there are no rules.
    #[must_use]
    pub fn boxed(self) -> Option<Box<dyn Rules>> {
        (!self.is_empty()).then(|| Box::new(self) as Box<dyn Rules>)
    }

    /// The names that the rules use, in the order of the text.
    #[must_use]
    pub fn names(&self) -> &[RuleName] {
        &self.names
    }

    /// The tool scopes that the rules require by `@approval`.
    #[must_use]
    pub fn scopes(&self) -> ToolScopes {
        self.rules.iter().flat_map(|rule| &rule.scopes).cloned().collect()
    }

    /// The ids of the rules, in the order of the text.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| &*rule.id)
    }
}

impl Group {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_head.is_empty()
    }

    /// Adds a rule by its number.
    fn add(&mut self, policy: &Policy, number: usize) {
        let numbered = policy.new_id(PolicyId::new(number.to_string()));
        self.by_head.entry(Head::of(policy)).or_default().add(numbered);
    }

    /// Makes it ready to be asked.
    fn join(&mut self) {
        self.by_head.values_mut().for_each(Part::join);
    }
}

impl Head {
    fn of(policy: &Policy) -> Self {
        let principal = match policy.principal_constraint() {
            PrincipalConstraint::Any | PrincipalConstraint::Is(_) => None,
            PrincipalConstraint::In(one)
            | PrincipalConstraint::Eq(one)
            | PrincipalConstraint::IsIn(_, one) => Some(one),
        };
        let resource = match policy.resource_constraint() {
            ResourceConstraint::Any => HeadResource::Any,
            ResourceConstraint::Is(kind) => HeadResource::Of(kind),
            ResourceConstraint::In(one)
            | ResourceConstraint::Eq(one)
            | ResourceConstraint::IsIn(_, one) => HeadResource::One(one),
        };
        Self { principal, resource }
    }
}

/// The rules in the order of the text: the parser numbers them so.
fn ordered(read: &PolicySet) -> Vec<&Policy> {
    let number = |policy: &&Policy| {
        let id: &str = policy.id().as_ref();
        id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap_or(usize::MAX)
    };
    let mut ordered: Vec<_> = read.policies().collect();
    ordered.sort_by_key(number);
    ordered
}

/// The annotations of the rules: their ids, reasons and scopes.
fn drafts<'t>(text: &str, ordered: &[&'t Policy], faults: &mut Vec<RuleFault>) -> Vec<Draft<'t>> {
    let (mut from, mut ids, mut drafts) = (0, HashSet::new(), Vec::new());
    for (index, policy) in ordered.iter().enumerate() {
        // The text of a rule is stored as written.
        let own = policy.to_cedar().unwrap_or_default();
        let at = text.get(from..).and_then(|rest| rest.find(&own)).map_or(from, |at| from + at);
        from = at + own.len();
        let line = line_of(text, at);
        let mut reading = Reading { line, id: String::new(), faults: Vec::new() };
        let rule = reading.rule(policy, index);
        if !ids.insert(rule.id.clone()) {
            reading.refuse("another rule has the same id", "give each its own");
        }
        faults.append(&mut reading.faults);
        drafts.push(Draft { policy, line, rule });
    }
    drafts
}

/// The annotations of one rule, and their faults.
struct Reading {
    line: usize,
    id: String,
    faults: Vec<RuleFault>,
}

impl Reading {
    fn rule(&mut self, policy: &Policy, index: usize) -> Rule {
        let said: BTreeMap<&str, &str> = policy.annotations().collect();
        self.id = said.get("id").map_or_else(|| format!("rule-{}", index + 1), |id| (*id).into());
        let is_fit =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
        if self.id.is_empty() || self.id.len() > ID_MAX || !self.id.chars().all(is_fit) {
            let message = "its id is not a short word";
            self.refuse(message, "use up to 100 letters, digits and `-`, `_`, `.`, `:`, `/`");
            // The refused id may be any text, and the id is shown.
            self.id = format!("rule-{}", index + 1);
        }
        for name in said.keys().filter(|name| !["id", "reason", "approval"].contains(name)) {
            let message = format!("`@{name}` is not known here");
            self.refuse(&message, "a rule takes `@id`, `@reason` and `@approval`");
        }
        if policy.effect() == Effect::Permit {
            let message = "`permit` has no effect: rules can only restrict what grants and the \
                           exposure of servers allow";
            self.refuse(message, "write `forbid`, with `unless` for the calls that stay possible");
        }
        let reason = said.get("reason").copied().unwrap_or_default();
        if reason.len() > REASON_MAX || reason.chars().any(char::is_control) {
            self.refuse("its reason is not one line of text", "use at most 500 bytes");
        }
        let scopes = said.get("approval").map(|scopes| self.scopes(scopes)).unwrap_or_default();
        let (id, reason) = (self.id.as_str().into(), reason.into());
        Rule { id, reason, scopes, typed: None, is_told: AtomicBool::new(false) }
    }

    fn scopes(&mut self, text: &str) -> ToolScopes {
        let names = text.split([',', ' ']).filter(|name| !name.is_empty());
        let mut scopes = ToolScopes::new();
        for name in names {
            match ToolScope::new(name) {
                Ok(scope) => _ = scopes.insert(scope),
                Err(error) => self.refuse(
                    &format!("`@approval` names no tool scope: {error}"),
                    "name tool scopes such as `linear.write`, with commas between",
                ),
            }
        }
        if scopes.is_empty() && self.faults.is_empty() {
            let remedy = "name a tool scope, or leave `@approval` out to forbid";
            self.refuse("`@approval` names no tool scope", remedy);
        }
        scopes
    }

    fn refuse(&mut self, message: &str, remedy: &str) {
        self.faults.push(RuleFault {
            line: Some(self.line),
            rule: Some(self.id.clone()),
            message: message.to_owned(),
            remedy: remedy.to_owned(),
        });
    }
}

/// Checks one rule against the schema; gives of which types its arguments must be, if it asks for
/// some.
fn check(policy: &Policy, rule: &Rule, line: usize, faults: &mut Vec<RuleFault>) -> Option<Kinds> {
    let (at, id) = (Some(line), Some(rule.id.to_string()));
    let mut refuse = |message: String, remedy: &str| {
        let remedy = remedy.to_owned();
        faults.push(RuleFault { line: at, rule: id.clone(), message, remedy });
    };
    if let Some((message, remedy)) = further::fault(policy) {
        refuse(message, &remedy);
        return None;
    }
    let asked = match policy.to_pst() {
        Ok(read) => Asked::by(&read),
        Err(error) => {
            refuse(error.to_string(), "see docs/guides/policy.md for the form of a rule");
            return None;
        }
    };
    if !asked.faults.is_empty() {
        asked.faults.iter().for_each(|(message, remedy)| refuse(message.clone(), remedy));
        return asked.is_any().then(|| asked.kinds());
    }
    let named = policy.new_id(PolicyId::new(&rule.id));
    let one = PolicySet::from_policies([named]).expect("a single rule has no double");
    let result = match asked.is_any() {
        false => schema::PLAIN.validate(&one, ValidationMode::Strict),
        true => match schema::asking(asked.attributes()) {
            Some(validator) => validator.validate(&one, ValidationMode::Strict),
            None => {
                let message = "it uses an argument that no rule can use".to_owned();
                refuse(message, "names that begin with `__cedar` are reserved");
                return Some(asked.kinds());
            }
        },
    };
    let before = faults.len();
    let errors = result.validation_errors().map(|error| invalid(error, &rule.id, line));
    faults.extend(once_for_all_types(errors.collect()));
    if faults.len() == before {
        let warnings = result.validation_warnings();
        faults.extend(warnings.map(|warning| suspicious(warning, &rule.id, line)));
    }
    asked.is_any().then(|| asked.kinds())
}

/// A rule about resources of all types has the same fault for each type: one report is enough.
fn once_for_all_types(mut faults: Vec<RuleFault>) -> Vec<RuleFault> {
    let of_any = |message: &str| {
        let types = ["`Tool`", "`Resource`", "`Prompt`", "`Method`"];
        types.iter().fold(message.to_owned(), |message, name| message.replace(name, "`Tool`"))
    };
    let mut seen = HashSet::new();
    // Tools come first.
    faults.sort_by(|one, other| other.message.cmp(&one.message));
    faults.retain(|fault| seen.insert(of_any(&fault.message)));
    faults
}

/// In the order of the text, as many as one can read.
fn cut(mut faults: Vec<RuleFault>) -> Vec<RuleFault> {
    faults.sort();
    faults.dedup();
    let more = faults.len().saturating_sub(FAULTS_MAX);
    faults.truncate(FAULTS_MAX);
    if more > 0 {
        let message = format!("there are {more} more faults");
        faults.push(RuleFault::whole(message, "correct these first"));
    }
    faults
}

#[cfg(test)]
mod tests;
