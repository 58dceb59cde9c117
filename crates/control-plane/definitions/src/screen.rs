//! Checks one definition against all rules.

use std::collections::HashSet;

use narthex_model::json::Node;

use crate::{
    Definition, Finding, Rule, Unreadable, encoded::encoded, finding::Findings, hidden::hidden,
    instructions::instructions, markup::markup, names, place::Place,
};

/// The findings of the rules in a definition, place by place; most definitions have none. At most
/// [`FINDINGS_MAX`](crate::FINDINGS_MAX), and each rule once per text.
#[must_use]
pub fn screen(definition: &Definition) -> Vec<Finding> {
    let mut findings = Findings::default();
    for (key, node) in definition.members() {
        if let ("name", Node::Text(name)) = (key.as_str(), node) {
            look_at_name(name, &Place::WHOLE.key("name"), &mut findings);
        }
    }
    look_at(&definition.node, &Place::WHOLE, &mut findings);
    findings.into_vec()
}

/// As [`screen()`], for a definition in its raw form. An unreadable definition is a finding.
#[must_use]
pub fn screen_raw(key: &str, raw: &[u8]) -> Vec<Finding> {
    let rule = match Definition::read(key, raw) {
        Ok(definition) => return screen(&definition),
        Err(Unreadable::TooLarge) => Rule::TooLarge,
        Err(Unreadable::NoObject) => Rule::Unreadable,
    };
    let mut findings = Findings::default();
    let beginning = &raw[..raw.len().min(crate::EXCERPT_MAX)];
    findings.add(rule, &Place::WHOLE, &String::from_utf8_lossy(beginning));
    findings.into_vec()
}

fn look_at(node: &Node, place: &Place<'_>, findings: &mut Findings) {
    if findings.is_full() {
        return;
    }
    match node {
        Node::Null | Node::Bool(_) | Node::Number(_) => {}
        Node::Text(text) => look_at_text(text, place, findings),
        Node::List(nodes) => {
            for (index, node) in nodes.iter().enumerate() {
                look_at(node, &place.index(index), findings);
            }
        }
        Node::Object(members) => {
            let mut seen = HashSet::new();
            for (key, node) in members {
                let place = place.key(key);
                if !seen.insert(key) {
                    findings.add(Rule::KeyTwice, &place, key);
                }
                look_at_key(key, node, &place, findings);
                look_at(node, &place, findings);
            }
        }
    }
}

/// Keys are words that models read, as those of properties.
fn look_at_key(key: &str, node: &Node, place: &Place<'_>, findings: &mut Findings) {
    look_at_name(key, place, findings);
    look_at_text(key, place, findings);
    if let ("$ref" | "$dynamicRef", Node::Text(target)) = (key, node)
        && (target.contains("://") || target.starts_with("//"))
    {
        findings.add(Rule::RemoteReference, place, target);
    }
}

fn look_at_name(name: &str, place: &Place<'_>, findings: &mut Findings) {
    if names::is_in_disguise(name) {
        findings.add(Rule::ConfusableName, place, &names::spelled(name));
    }
}

fn look_at_text(text: &str, place: &Place<'_>, findings: &mut Findings) {
    for (rule, excerpt) in hidden(text) {
        findings.add(rule, place, &excerpt);
    }
    for (rule, excerpt) in markup(text) {
        findings.add(rule, place, &excerpt);
    }
    // The picture of an icon, which no model reads as text.
    let is_picture = text.starts_with("data:image/") && place.is_source_of_icon();
    if !is_picture {
        for (rule, excerpt) in encoded(text) {
            findings.add(rule, place, &excerpt);
        }
    }
    for (rule, excerpt) in instructions(text) {
        findings.add(rule, place, &excerpt);
    }
}
