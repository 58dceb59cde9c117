//! Evaluates a set of rules for one request.

use std::{
    collections::{HashMap, HashSet},
    sync::{LazyLock, atomic::Ordering},
    time::UNIX_EPOCH,
};

use cedar_policy::{
    Authorizer, Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, PolicySet, Request,
    RestrictedExpression,
};
use narthex_model::{
    json::{Node, field},
    uri::spellings,
};
use narthex_policy::{Arguments, Forbidding, Item, Question, Rules, Ruling};

use crate::{
    RuleSet,
    arguments::ARGUMENTS,
    bounds,
    part::{Part, number},
    set::{Group, Head, HeadResource, Rule},
    typed::Left,
    values,
};

type Values = Vec<(String, RestrictedExpression)>;

/// The names of types, which are parsed once.
struct Types {
    agent: EntityTypeName,
    server: EntityTypeName,
    tool: EntityTypeName,
    prompt: EntityTypeName,
    resource: EntityTypeName,
    method: EntityTypeName,
    call: EntityUid,
}

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    let name = |name: &str| name.parse::<EntityTypeName>().expect("the schema has this type");
    Types {
        agent: name("Agent"),
        server: name("Server"),
        tool: name("Tool"),
        prompt: name("Prompt"),
        resource: name("Resource"),
        method: name("Method"),
        call: EntityUid::from_type_name_and_id(name("Action"), EntityId::new("call")),
    }
});

pub(crate) static AUTHORIZER: LazyLock<Authorizer> = LazyLock::new(Authorizer::new);

/// A question in the words of the schema.
struct Asked {
    principal: EntityUid,
    resource: EntityUid,
    heads: Vec<Head>,
    entities: Entities,
    context: Values,
}

/// The rules that match, by number, and those of them that could not be asked.
#[derive(Default)]
struct Matches {
    all: Vec<usize>,
    failed: HashSet<usize>,
}

impl Rules for RuleSet {
    /// A resource is evaluated in each of its [spellings]; a rule that matches any of them matches.
    fn ask(&self, question: &Question<'_>) -> Ruling {
        bounds::with_room_to_ask(|| self.answer(question))
    }
}

impl RuleSet {
    fn answer(&self, question: &Question<'_>) -> Ruling {
        let mut matches = Matches::default();
        let names = match question.item {
            Item::Resource(uri) => spellings(uri),
            item => vec![item.name().into()],
        };
        for name in names {
            self.find(question, &name, &mut matches);
        }
        matches.all.sort_unstable();
        matches.all.dedup();
        self.ruling(matches)
    }

    /// Evaluates the rules for an item with this name.
    fn find(&self, question: &Question<'_>, name: &str, matches: &mut Matches) {
        let Some(asked) = Asked::of(question, name) else {
            // No question can be so wrong; if one were, the matching rules would be unknown.
            matches.all.extend(0..self.rules.len());
            matches.failed.extend(0..self.rules.len());
            return;
        };
        if !self.plain.is_empty() {
            matches.find(&self.plain, &asked, asked.context.clone());
        }
        if let Arguments::Json(arguments) = question.arguments
            && !self.asking.is_empty()
        {
            let mut context = asked.context.clone();
            let given = values::given(arguments);
            let mistyped = given.as_ref().map(|given| self.mistyped(given, &asked));
            // Without them, a rule that looks at one cannot be asked, and so matches.
            let record = given.and_then(values::record);
            context.extend(record.map(|record| (ARGUMENTS.to_owned(), record)));
            matches.take_mistyped(mistyped.unwrap_or_default(), &asked, &context);
            matches.find(&self.asking, &asked, context);
        }
    }

    /// The rules whose arguments are of another type than they require, with their rests.
    fn mistyped(&self, given: &Node, asked: &Asked) -> Vec<(usize, Left)> {
        let parts = asked.heads.iter().filter_map(|head| self.asking.by_head.get(head));
        let mut known: Vec<Option<Vec<&str>>> = vec![None; self.kinds.len()];
        let left = |number: usize| {
            let typed = self.rules.get(number)?.typed.as_ref()?;
            let (kinds, known) = (self.kinds.get(typed.kinds)?, known.get_mut(typed.kinds)?);
            let names = known.get_or_insert_with(|| kinds.mistyped(given));
            (!names.is_empty()).then(|| (number, typed.left(names)))
        };
        parts.flat_map(Part::numbers).filter_map(left).collect()
    }

    fn ruling(&self, matches: Matches) -> Ruling {
        let mut ruling = Ruling::default();
        for number in matches.all {
            let Some(rule) = self.rules.get(number) else { continue };
            ruling.matched.push(rule.id.clone());
            if matches.failed.contains(&number) {
                ruling.failed.push(rule.id.clone());
                tell(rule);
            }
            match rule.scopes.is_empty() {
                true if ruling.forbidden.is_none() => {
                    let (rule, reason) = (rule.id.clone(), rule.reason.clone());
                    ruling.forbidden = Some(Forbidding { rule, reason });
                }
                true => {}
                false => ruling.scopes.extend(rule.scopes.iter().cloned()),
            }
        }
        ruling
    }
}

/// A rule that cannot be asked something counts as matching. Logged once for each rule, as a caller
/// can cause it as often as it likes.
fn tell(rule: &Rule) {
    if !rule.is_told.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            rule.id = &*rule.id,
            "a rule could not be evaluated for a call, so it counts as matching: an argument has \
             another type than the rule expects, a key imitates one that the rule names, or the \
             arguments are too large"
        );
    }
}

impl Matches {
    /// Asks those rules of a group that may be about this.
    fn find(&mut self, group: &Group, asked: &Asked, context: Values) {
        let mut parts = asked.heads.iter().filter_map(|head| group.by_head.get(head)).peekable();
        if parts.peek().is_none() {
            return;
        }
        let request = asked.request(context);
        for part in parts {
            let Some(request) = &request else {
                self.fail(part);
                continue;
            };
            for set in part.sets_for(request, &asked.entities) {
                self.take(set, request, &asked.entities);
            }
        }
    }

    /// Takes the rules whose other conditions hold.
    fn take_mistyped(&mut self, rules: Vec<(usize, Left)>, asked: &Asked, context: &Values) {
        if rules.is_empty() {
            return;
        }
        let request = asked.request(context.clone());
        let is_so = |rule| match (&request, PolicySet::from_policies([rule])) {
            (Some(request), Ok(one)) => {
                let response = AUTHORIZER.is_authorized(request, &one, &asked.entities);
                let said = response.diagnostics();
                said.reason().next().is_some() || said.errors().next().is_some()
            }
            // Without an answer the rule counts as matching.
            _ => true,
        };
        let so = rules
            .into_iter()
            .filter_map(|(number, Left(rule))| rule.is_none_or(is_so).then_some(number));
        let so: Vec<_> = so.collect();
        self.all.extend_from_slice(&so);
        self.failed.extend(so);
    }

    fn take(&mut self, set: &PolicySet, request: &Request, entities: &Entities) {
        let response = AUTHORIZER.is_authorized(request, set, entities);
        let said = response.diagnostics();
        self.all.extend(said.reason().filter_map(number));
        for error in said.errors() {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(error) = error;
            let number = number(error.policy_id());
            self.all.extend(number);
            self.failed.extend(number);
        }
    }

    fn fail(&mut self, part: &Part) {
        let numbers: Vec<_> = part.numbers().collect();
        self.all.extend_from_slice(&numbers);
        self.failed.extend(numbers);
    }
}

impl Asked {
    /// The question with this context, if Cedar takes it.
    fn request(&self, context: Values) -> Option<Request> {
        let context = Context::from_pairs(context).ok()?;
        let (principal, resource) = (self.principal.clone(), self.resource.clone());
        Request::new(principal, TYPES.call.clone(), resource, context, None).ok()
    }

    fn of(question: &Question<'_>, name: &str) -> Option<Self> {
        let Question { actors, server, item, method, origin, site, at, arguments: _ } = question;
        let id = site.server_id.unwrap_or(server.as_str());
        let of_server = uid(&TYPES.server, id);
        let (kind, name) = match item {
            Item::Tool(_) => (&TYPES.tool, name),
            Item::Prompt(_) => (&TYPES.prompt, name),
            Item::Resource(_) => (&TYPES.resource, name),
            // A task without a call that made it is asked of by its method.
            Item::Task(_) | Item::Server => (&TYPES.method, *method),
        };
        let resource = uid(kind, &format!("{id}/{name}"));
        let agent = actors.agent.as_ref().map_or("", |agent| agent.as_str());
        let principal = uid(&TYPES.agent, agent);
        let user = actors.user.as_ref().map_or("", |user| user.as_str());
        let attributes = HashMap::from([
            text("name", agent),
            text("agent_type", actors.agent_type.map_or("", |kind| kind.as_str())),
            text("workspace", site.workspace),
            text("session", &actors.session.map(|id| id.to_text()).unwrap_or_default()),
            text("run", &actors.run.map(|id| id.to_text()).unwrap_or_default()),
            text("user", user),
            ("is_child".to_owned(), RestrictedExpression::new_bool(actors.is_child)),
        ]);
        let of_resource = HashMap::from([
            text("name", name),
            ("server".to_owned(), RestrictedExpression::new_entity_uid(of_server.clone())),
        ]);
        let of_server_attributes = HashMap::from([text("id", id), text("alias", server.as_str())]);
        let inside = HashSet::from([of_server.clone()]);
        let entities = [
            Entity::new(principal.clone(), attributes, HashSet::new()).ok()?,
            Entity::new(of_server.clone(), of_server_attributes, HashSet::new()).ok()?,
            Entity::new(resource.clone(), of_resource, inside).ok()?,
        ];
        let entities = Entities::from_entities(entities, None).ok()?;
        let context = vec![
            text("method", method),
            text("endpoint", site.endpoint),
            text("era", site.era),
            text("origin", origin.as_str()),
            ("annotations".to_owned(), annotations(site.annotations)?),
            ("time".to_owned(), time(*at)?),
        ];
        let heads = heads(&principal, kind, [&resource, &of_server]);
        Some(Self { principal, resource, heads, entities, context })
    }
}

/// All heads of rules that may be about this.
fn heads(principal: &EntityUid, kind: &EntityTypeName, ones: [&EntityUid; 2]) -> Vec<Head> {
    let resources = [HeadResource::Any, HeadResource::Of(kind.clone())].into_iter();
    let resources = resources.chain(ones.map(|one| HeadResource::One(one.clone())));
    let of_each = |resource: HeadResource| {
        [None, Some(principal.clone())]
            .map(|principal| Head { principal, resource: resource.clone() })
    };
    resources.flat_map(of_each).collect()
}

fn uid(kind: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(kind.clone(), EntityId::new(id))
}

fn text(name: &str, value: &str) -> (String, RestrictedExpression) {
    (name.to_owned(), RestrictedExpression::new_string(value.to_owned()))
}

/// The annotations that a server declares for its tool, with the protocol's defaults for missing
/// ones.
fn annotations(declared: Option<&[u8]>) -> Option<RestrictedExpression> {
    let declared = declared.and_then(|text| Node::parse(text).ok());
    let hint = |name: &str, otherwise: bool| {
        let said = match &declared {
            Some(Node::Object(fields)) => match field(fields, name) {
                Some(Node::Bool(said)) => Some(*said),
                _ => None,
            },
            _ => None,
        };
        (name.to_owned(), RestrictedExpression::new_bool(said.unwrap_or(otherwise)))
    };
    let hints = [
        hint("readOnlyHint", false),
        hint("destructiveHint", true),
        hint("idempotentHint", false),
        hint("openWorldHint", true),
    ];
    RestrictedExpression::new_record(hints).ok()
}

/// A time in UTC. Weekdays count from Monday, which is 1.
fn time(at: std::time::SystemTime) -> Option<RestrictedExpression> {
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let long = |name: &str, value| (name.to_owned(), RestrictedExpression::new_long(value));
    let days = seconds / 86_400;
    RestrictedExpression::new_record([
        long("seconds", seconds),
        // 1970 began on a Thursday.
        long("weekday", (days + 3) % 7 + 1),
        long("hour", seconds / 3_600 % 24),
        long("minute", seconds / 60 % 60),
    ])
    .ok()
}

#[cfg(test)]
mod tests;
