//! The arguments that a rule uses, and the types that the rule implies for them.
//!
//! Tools take whichever arguments their servers declare, so that no schema knows them. The use of
//! an argument in a rule implies its type: `like` takes a text, `<` a whole number. The rule is
//! checked against that type. An argument of another type at a call is an error of the rule, which
//! then matches. Cedar itself reports this error for `like` and `<` alone, and takes `==` and
//! `contains` for false there. Servers that read `"true"` as `true` would then be called with
//! arguments that the rule forbids.

use std::{collections::BTreeMap, sync::Arc};

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Policy, UnaryOp, Var};
use narthex_model::{imitates, json::Node};
use serde_json::{Map, Value, json};

use crate::values;

/// The member of the context in which they are.
pub(crate) const ARGUMENTS: &str = "arguments";

/// The types of the arguments that a rule uses for more than a test of presence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Kinds(BTreeMap<String, Kind>);

/// The type that a rule requires of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// Any type: the rule only tests presence or equality.
    Any,
    Bool,
    Long,
    Text,
    Set(Box<Kind>),
    Record(BTreeMap<String, Kind>),
}

/// The arguments that one rule uses.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    arguments: BTreeMap<String, Kind>,
    is_asked: bool,
    /// The faults of the rule: a message and a remedy each.
    pub(crate) faults: Vec<(String, &'static str)>,
}

impl Asked {
    /// The arguments that a rule uses.
    pub(crate) fn by(policy: &Policy) -> Self {
        let mut asked = Self::default();
        for clause in policy.body().clauses() {
            let (Clause::When(condition) | Clause::Unless(condition)) = clause;
            asked.walk(condition, Kind::Bool);
        }
        asked
    }

    /// True if the rule uses any argument.
    pub(crate) fn is_any(&self) -> bool {
        self.is_asked
    }

    /// The types that the arguments must have.
    pub(crate) fn kinds(self) -> Kinds {
        Kinds(self.arguments)
    }

    /// The arguments as attributes of a record in a schema. None of them need be there.
    pub(crate) fn attributes(&self) -> Map<String, Value> {
        attributes(&self.arguments)
    }

    /// Looks through an expression of which `kind` is expected.
    fn walk(&mut self, expr: &Expr, kind: Kind) {
        match expr {
            Expr::Var(Var::Context) => self.refuse_whole_context(),
            Expr::GetAttr { .. } => match path(expr) {
                Some(path) => self.note(&path, kind),
                None => self.walk_member(expr),
            },
            Expr::HasAttr { expr, attrs } => {
                let names: Vec<_> = attrs.iter().map(|name| name.to_string()).collect();
                self.walk_has(expr, names);
            }
            Expr::Like { expr, .. } => self.walk(expr, Kind::Text),
            Expr::UnaryOp { op, expr } => self.walk(
                expr,
                match op {
                    UnaryOp::Not => Kind::Bool,
                    UnaryOp::Neg => Kind::Long,
                    UnaryOp::IsEmpty => Kind::Set(Box::new(Kind::Any)),
                    _ => Kind::Any,
                },
            ),
            Expr::BinaryOp { op, left, right } => self.walk_both(*op, left, right, kind),
            Expr::Is { expr, in_expr, .. } => {
                self.walk(expr, Kind::Any);
                in_expr.iter().for_each(|inside| self.walk(inside, Kind::Any));
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => {
                self.walk(cond, Kind::Bool);
                self.walk(then_expr, kind.clone());
                self.walk(else_expr, kind);
            }
            Expr::Set(items) => {
                let of = match kind {
                    Kind::Set(of) => *of,
                    _ => Kind::Any,
                };
                items.iter().for_each(|item| self.walk(item, of.clone()));
            }
            Expr::Record(members) => {
                members.values().for_each(|member| self.walk(member, Kind::Any));
            }
            // Literals and other variables name no argument.
            _ => {}
        }
    }

    /// An attribute of anything but the arguments.
    fn walk_member(&mut self, expr: &Expr) {
        let Expr::GetAttr { expr, attr } = expr else { return };
        match &**expr {
            Expr::Var(Var::Context) if attr == ARGUMENTS => {
                self.is_asked = true;
                let message = "it uses all arguments together".to_owned();
                self.faults.push((message, "name one, such as `context.arguments.path`"));
            }
            Expr::Var(_) => {}
            inner => self.walk(inner, Kind::Any),
        }
    }

    fn walk_has(&mut self, expr: &Expr, names: Vec<String>) {
        let inside = match expr {
            Expr::Var(Var::Context) if names.iter().any(|name| name == ARGUMENTS) => {
                // If rules cannot see the arguments, the test would be false, and the rule would
                // allow calls that it should forbid.
                self.is_asked = true;
                let message = "it tests if there are arguments, which always exist";
                let remedy = "test one of them: `context.arguments has path`";
                self.faults.push((message.to_owned(), remedy));
                return;
            }
            Expr::Var(_) => return,
            Expr::GetAttr { expr: inner, attr }
                if attr == ARGUMENTS && matches!(**inner, Expr::Var(Var::Context)) =>
            {
                Some(Vec::new())
            }
            other => path(other),
        };
        match inside {
            Some(mut path) => {
                path.extend(names);
                self.note(&path, Kind::Any);
            }
            None => self.walk(expr, Kind::Any),
        }
    }

    fn walk_both(&mut self, op: BinaryOp, left: &Arc<Expr>, right: &Arc<Expr>, kind: Kind) {
        let set = |of: Kind| Kind::Set(Box::new(of));
        let (of_left, of_right) = match op {
            BinaryOp::Eq | BinaryOp::NotEq => (kind_of(right), kind_of(left)),
            BinaryOp::And | BinaryOp::Or => (Kind::Bool, Kind::Bool),
            BinaryOp::Less
            | BinaryOp::LessEq
            | BinaryOp::Greater
            | BinaryOp::GreaterEq
            | BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul => (Kind::Long, Kind::Long),
            BinaryOp::Contains => match kind_of(left) {
                Kind::Set(of) => (set(kind_of(right)), *of),
                _ => (set(kind_of(right)), Kind::Any),
            },
            BinaryOp::ContainsAll | BinaryOp::ContainsAny => {
                let either = |kind| if kind == Kind::Any { set(Kind::Any) } else { kind };
                (either(kind_of(right)), either(kind_of(left)))
            }
            _ => (kind.clone(), kind),
        };
        self.walk(left, of_left);
        self.walk(right, of_right);
    }

    fn refuse_whole_context(&mut self) {
        // Otherwise a rule could reach the arguments in ways that this check cannot see.
        let message = "it uses the context as a whole".to_owned();
        self.faults.push((message, "name one of its members, such as `context.endpoint`"));
    }

    /// Something is expected of the argument at a path.
    fn note(&mut self, path: &[String], kind: Kind) {
        self.is_asked = true;
        if !put(&mut self.arguments, path, kind) {
            let shown = path.join(".");
            let message = format!("`context.arguments.{shown}` cannot be of two types at once");
            self.faults.push((message, "split it into two rules, each for the tools of one type"));
        }
    }
}

impl Kinds {
    /// The names of given arguments with another type than the rule implies, at any depth. Also
    /// those that a server may read from a key that only imitates the name.
    pub(crate) fn mistyped<'a>(&'a self, given: &Node) -> Vec<&'a str> {
        let Node::Object(given) = given else { return Vec::new() };
        let is_other = |name: &str, kind: &Kind| {
            let is_other =
                |key: &str, node: &Node| imitates(key, name) || (key == name && !kind.is_of(node));
            given.iter().any(|(key, node)| is_other(key, node))
        };
        let others = self.0.iter().filter(|(name, kind)| is_other(name, kind));
        others.map(|(name, _)| name.as_str()).collect()
    }
}

impl Kind {
    /// True if a value is of this kind, as rules see it: a `null` counts as absent.
    fn is_of(&self, node: &Node) -> bool {
        match (self, node) {
            (_, Node::Null) | (Self::Any, _) | (Self::Bool, Node::Bool(_)) => true,
            (Self::Text, Node::Text(_)) => true,
            (Self::Long, Node::Number(number)) => values::whole(number).is_some(),
            (Self::Text, Node::Number(number)) => values::whole(number).is_none(),
            (Self::Set(of), Node::List(items)) => items.iter().all(|item| of.is_of(item)),
            (Self::Record(members), Node::Object(fields)) => fields.iter().all(|(key, node)| {
                members.get(key).is_none_or(|kind| kind.is_of(node))
                    && !members.keys().any(|name| imitates(key, name))
            }),
            (Self::Bool | Self::Long | Self::Text | Self::Set(_) | Self::Record(_), _) => false,
        }
    }
}

/// The names below `context.arguments`, if it is that; at least one.
fn path(expr: &Expr) -> Option<Vec<String>> {
    let Expr::GetAttr { expr: inner, attr } = expr else { return None };
    if let Expr::GetAttr { expr: root, attr: first } = &**inner
        && first == ARGUMENTS
        && matches!(**root, Expr::Var(Var::Context))
    {
        return Some(vec![attr.to_string()]);
    }
    let mut path = path(inner)?;
    path.push(attr.to_string());
    Some(path)
}

/// The certain type of an expression.
fn kind_of(expr: &Expr) -> Kind {
    match expr {
        Expr::Literal(Literal::Bool(_)) => Kind::Bool,
        Expr::Literal(Literal::Long(_)) => Kind::Long,
        Expr::Literal(Literal::String(_)) => Kind::Text,
        Expr::UnaryOp { op: UnaryOp::Neg, .. } => Kind::Long,
        Expr::Set(items) => {
            let kinds = items.iter().map(|item| kind_of(item));
            let known = kinds.into_iter().find(|kind| *kind != Kind::Any);
            Kind::Set(Box::new(known.unwrap_or(Kind::Any)))
        }
        // The known attributes of the context, the principal and the resource.
        Expr::GetAttr { expr, attr } => match (&**expr, attr.as_str()) {
            (Expr::Var(Var::Context), "method" | "endpoint" | "era" | "origin") => Kind::Text,
            (Expr::Var(Var::Principal), "is_child") => Kind::Bool,
            (Expr::Var(Var::Principal | Var::Resource), _) => Kind::Text,
            _ => Kind::Any,
        },
        _ => Kind::Any,
    }
}

/// Adds the expected kind at a path; `false` if another kind is expected there.
fn put(arguments: &mut BTreeMap<String, Kind>, path: &[String], kind: Kind) -> bool {
    let Some((first, rest)) = path.split_first() else { return true };
    let known = arguments.entry(first.clone()).or_insert(Kind::Any);
    if rest.is_empty() {
        return join(known, kind);
    }
    if *known == Kind::Any {
        *known = Kind::Record(BTreeMap::new());
    }
    match known {
        Kind::Record(members) => put(members, rest, kind),
        _ => false,
    }
}

/// Takes over the more exact of two kinds; `false` if they are no one kind.
fn join(known: &mut Kind, other: Kind) -> bool {
    match (&mut *known, other) {
        (_, Kind::Any) => true,
        (Kind::Any, other) => {
            *known = other;
            true
        }
        (Kind::Set(known), Kind::Set(other)) => join(known, *other),
        (Kind::Record(_), Kind::Record(_)) => true,
        (known, other) => *known == other,
    }
}

fn attributes(members: &BTreeMap<String, Kind>) -> Map<String, Value> {
    let attribute = |(name, kind): (&String, &Kind)| {
        let mut attribute = schema_of(kind);
        attribute["required"] = false.into();
        (name.clone(), attribute)
    };
    members.iter().map(attribute).collect()
}

fn schema_of(kind: &Kind) -> Value {
    match kind {
        Kind::Any | Kind::Text => json!({ "type": "String" }),
        Kind::Bool => json!({ "type": "Boolean" }),
        Kind::Long => json!({ "type": "Long" }),
        Kind::Set(of) => json!({ "type": "Set", "element": schema_of(of) }),
        Kind::Record(members) => json!({ "type": "Record", "attributes": attributes(members) }),
    }
}
