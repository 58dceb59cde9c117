//! Changes of several tools at once, each as a change of the entry of its server.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use narthex_console::{Told, parts::Words};
use narthex_model::{ErrorKind, NameRule, ServerDefinition, ToolScope, ToolScopes};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    act::{Act, fixed},
    list::{Listed, Wanted},
    table::{Again, page},
};
use crate::{
    body::RequestBody,
    console::{
        answer::{self, Answered, nothing},
        viewer::{Form, Viewer},
    },
    problem::Problem,
};

/// A change with the scope that it requires, if it requires one.
#[derive(Debug, Clone, Copy)]
struct Change<'c> {
    act: Act,
    scope: Option<&'c ToolScope>,
}

/// The form: the act, the filters, and the chosen tools.
#[derive(Debug, Deserialize)]
struct Changes {
    csrf: String,
    #[serde(default)]
    act: String,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    whole: String,
    /// The filters, and a field for each chosen tool.
    #[serde(flatten)]
    rest: BTreeMap<String, String>,
}

/// The tools to change, by server.
type Chosen = BTreeMap<String, BTreeSet<String>>;

impl Form for Changes {
    fn csrf(&self) -> &str {
        &self.csrf
    }
}

/// Changes the chosen tools, server by server, and shows what has changed.
pub(super) async fn change(viewer: &Viewer<'_>, body: RequestBody) -> Answered {
    let form: Changes = viewer.form(body).await?;
    if !viewer.sees_servers() {
        return Err(nothing());
    }
    let text = |name: &str| form.rest.get(name).cloned().unwrap_or_default();
    let wanted = Wanted::read(text)?;
    let is_pick = |name: &str| {
        let digits = name.strip_prefix('t').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let picks = form.rest.iter().filter(|(name, _)| is_pick(name));
    let again = Again {
        act: Act::of(&form.act),
        scope: form.scope.clone(),
        is_whole: !form.whole.is_empty(),
        picked: picks.map(|(_, value)| value.clone()).collect(),
        ..Again::default()
    };
    let Some(act) = again.act else {
        return Err(Problem::new(ErrorKind::Invalid, "choose one of the changes of the form"));
    };
    let scope = match (act, ToolScope::new(form.scope.trim())) {
        (Act::Require, Ok(scope)) => Some(scope),
        (Act::Require, Err(error)) => {
            let again = Again { fault: Some(error.to_string()), ..again };
            return page(viewer, &wanted, again, StatusCode::UNPROCESSABLE_ENTITY).await;
        }
        _ => None,
    };
    let chosen = chosen(viewer, &wanted, &again);
    if chosen.is_empty() {
        let again = refused(again, "Nothing was changed: no tool was chosen that can be changed.");
        return page(viewer, &wanted, again, StatusCode::UNPROCESSABLE_ENTITY).await;
    }
    let change = Change { act, scope: scope.as_ref() };
    let (mut done, mut faults) = (0, Vec::new());
    for (server, tools) in &chosen {
        match change_one(viewer, server, tools, change).await {
            Ok(count) => done += count,
            Err(problem) => faults.push(format!("{server}: {}", problem.detail())),
        }
    }
    if faults.is_empty() {
        let count = done.to_string();
        let more = [("done", act.word()), ("n", count.as_str())];
        return answer::redirect(&wanted.address_with(viewer, &more));
    }
    let sentence = format!("{done} changed; not changed: {}", faults.join("; "));
    page(viewer, &wanted, refused(again, &sentence), StatusCode::CONFLICT).await
}

fn refused(again: Again, sentence: &str) -> Again {
    let told = Told { sentence: Words::within(sentence, 2_000), is_failure: true };
    Again { told: Some(told), ..again }
}

/// The chosen tools that exist, that the human sees, and that can be changed here.
fn chosen(viewer: &Viewer<'_>, wanted: &Wanted, again: &Again) -> Chosen {
    let snapshot = viewer.door.gateway.registry().snapshot();
    let picked: BTreeSet<_> = again.picked.iter().map(String::as_str).collect();
    let everything = Wanted::default();
    let listed = Listed::of(viewer, &snapshot, if again.is_whole { wanted } else { &everything });
    let mut chosen = Chosen::new();
    for one in &listed.tools {
        let is_chosen = again.is_whole || picked.contains(one.pick().as_str());
        if is_chosen && fixed(one.row).is_none() {
            chosen.entry(one.row.name.clone()).or_default().insert(one.name.to_owned());
        }
    }
    chosen
}

/// Changes the entry of one server. Returns the number of tools that are now as wanted.
async fn change_one(
    viewer: &Viewer<'_>,
    server: &str,
    tools: &BTreeSet<String>,
    change: Change<'_>,
) -> Result<usize, Problem> {
    let registry = viewer.door.gateway.registry();
    let definition = registry.get(server).and_then(|row| row.definition.clone());
    let Some(definition) = definition else {
        return Err(Problem::new(ErrorKind::Conflict, "its entry has changed; look again"));
    };
    let patch = patch(&definition, tools, change);
    let patch = patch.map_err(|fault| Problem::new(ErrorKind::Conflict, fault))?;
    viewer.control().patch_server(server, &patch.to_string(), &viewer.by()).await?;
    // The file may have further lists, so the result is read, and not assumed.
    let now = registry.get(server).and_then(|row| row.definition.clone());
    let Some(now) = now else { return Ok(0) };
    let is_done = |tool: &&String| match change.act {
        Act::Hide => !now.exposed.tools.lets(tool),
        Act::Show => now.exposed.tools.lets(tool),
        Act::Require => change.scope.is_some_and(|scope| now.gates.of_tool(tool).contains(scope)),
        Act::Free => now.gates.of_tool(tool).is_empty(),
    };
    let count = tools.iter().filter(is_done).count();
    if count < tools.len() {
        let left = tools.len() - count;
        let text = format!("{left} of the chosen tools stayed as they were; edit its entry");
        return Err(Problem::new(ErrorKind::Conflict, text));
    }
    Ok(count)
}

/// The fields of the entry that change, each as a whole.
fn patch(
    definition: &ServerDefinition,
    tools: &BTreeSet<String>,
    change: Change<'_>,
) -> Result<Value, String> {
    if matches!(change.act, Act::Hide | Act::Show) {
        return visibility(&definition.exposed.tools, tools, change.act);
    }
    let written = |scopes: &ToolScopes| scopes.iter().map(|one| one.as_str().to_owned()).collect();
    let gates = definition.gates.tools();
    let mut gates: BTreeMap<String, BTreeSet<String>> =
        gates.map(|(tool, scopes)| (tool.to_owned(), written(scopes))).collect();
    for tool in tools {
        match change.scope {
            Some(scope) => {
                gates.entry(tool.clone()).or_default().insert(scope.as_str().to_owned());
            }
            None => drop(gates.remove(tool)),
        }
    }
    let gates = if gates.is_empty() { Value::Null } else { json!(gates) };
    Ok(json!({ "tool_scopes": gates }))
}

/// The change of the lists of visible tools.
fn visibility(rule: &NameRule, tools: &BTreeSet<String>, act: Act) -> Result<Value, String> {
    let Some((mut allow, mut deny)) = rule.written() else {
        return Err("its entry has several lists of visible tools; edit them there".to_owned());
    };
    for tool in tools {
        if tool.contains(['*', '?']) {
            let tool = Words::within(tool, 80);
            return Err(format!("the name `{tool}` would be a pattern; edit its entry"));
        }
        if act == Act::Hide {
            if rule.lets(tool) {
                deny.push(tool.clone());
            }
            continue;
        }
        deny.retain(|pattern| pattern != tool);
        if let Some(allow) = &mut allow
            && !NameRule::new(Some(allow.as_slice()), &[]).lets(tool)
        {
            allow.push(tool.clone());
        }
    }
    let now = NameRule::new(allow.as_deref(), deny.as_slice());
    if let Some(tool) = tools.iter().find(|tool| act == Act::Show && !now.lets(tool)) {
        let tool = Words::within(tool, 80);
        return Err(format!("`{tool}` is hidden by a pattern of its entry; edit it there"));
    }
    let mut lists = Map::new();
    if let Some(allow) = allow {
        lists.insert("allow".to_owned(), json!(allow));
    }
    if !deny.is_empty() {
        lists.insert("deny".to_owned(), json!(deny));
    }
    let lists = if lists.is_empty() { Value::Null } else { Value::Object(lists) };
    Ok(json!({ "tools": lists }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|one| (*one).to_owned()).collect()
    }

    /// E151: hiding adds to `deny`, showing takes away, and a pattern is not undone for one name.
    #[test]
    fn e151_a_change_of_visibility_keeps_the_other_rules() {
        let rule = NameRule::new(None, &["*_all"]);
        let hidden = visibility(&rule, &names(&["push"]), Act::Hide).unwrap();
        assert_eq!(hidden, json!({ "tools": { "deny": ["*_all", "push"] } }));
        let rule = NameRule::new(Some(&["get_*"]), &["push"]);
        let shown = visibility(&rule, &names(&["push"]), Act::Show).unwrap();
        assert_eq!(shown, json!({ "tools": { "allow": ["get_*", "push"] } }));
        let rule = NameRule::new(None, &["push"]);
        let open = visibility(&rule, &names(&["push"]), Act::Show).unwrap();
        assert_eq!(open, json!({ "tools": null }));
        let rule = NameRule::new(None, &["pu*"]);
        assert!(visibility(&rule, &names(&["push"]), Act::Show).is_err());
        assert!(visibility(&rule, &names(&["a*"]), Act::Hide).is_err());
    }
}
