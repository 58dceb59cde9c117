//! Lists the profiles of the live configuration.

use narthex_gateway::VisibleTool;
use narthex_model::{ErrorKind, command::narthex, meant_hint};
use narthex_registry::DeclaredProfile;

use super::{Answered, Asked, ok};
use crate::{problem::Problem, shapes};

impl Asked<'_> {
    pub(super) fn profiles(&self) -> Answered {
        let profiles = self.door.gateway.registry().profiles();
        let mut all: Vec<_> = profiles.iter().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        self.page(all, |one| one.name.as_str(), |one| self.shown_profile(one))
    }

    pub(super) fn profile(&self) -> Answered {
        self.query(&[])?;
        let (profiles, name) = (self.door.gateway.registry().profiles(), self.segment(0));
        let found = profiles.get(&name).ok_or_else(|| {
            let meant = meant_hint(&name, profiles.iter().map(|one| one.name.as_str()));
            let (list, end) =
                (narthex("profiles list", &[]), if meant.is_empty() { ";" } else { "" });
            let text = format!("there is no profile `{name}`{meant}{end} `{list}` lists them");
            Problem::new(ErrorKind::NotFound, text)
        })?;
        Ok(ok(&self.shown_profile(found)))
    }

    fn shown_profile(&self, declared: &DeclaredProfile) -> shapes::Profile {
        let gateway = &self.door.gateway;
        let run = gateway.profile_run(&declared.name);
        let profile = declared.profile.as_deref();
        let patterns = profile.into_iter().flat_map(|profile| profile.tools());
        let tools = patterns.flat_map(|(alias, patterns)| {
            patterns.iter().map(move |pattern| format!("{alias}.{pattern}"))
        });
        let overrides = profile.into_iter().flat_map(|profile| profile.overrides());
        let overrides = overrides.map(|(server, tool, given)| shapes::ProfileOverride {
            server: server.into(),
            tool: tool.to_string(),
            name: given.name.as_ref().map(ToString::to_string),
            description: given.description.as_ref().map(ToString::to_string),
        });
        let visible = run.iter().flat_map(|run| gateway.visible_tools(run)).map(visible);
        let faults = declared.faults.iter().map(|fault| shapes::ProfileFault {
            path: fault.path.clone(),
            message: fault.message.clone(),
        });
        shapes::Profile {
            name: declared.name.clone(),
            path: run.is_some().then(|| format!("/mcp/p/{}", declared.name)),
            faults: faults.collect(),
            servers: profile
                .into_iter()
                .flat_map(|profile| profile.servers())
                .map(Into::into)
                .collect(),
            tools: tools.collect(),
            overrides: overrides.collect(),
            run_id: run.as_ref().map(|run| run.id.into()),
            sessions: run.as_ref().map_or(0, |run| gateway.sessions_of(run.id)),
            visible: visible.collect(),
        }
    }
}

fn visible(tool: VisibleTool) -> shapes::ProfileTool {
    let VisibleTool { name, server, tool } = tool;
    shapes::ProfileTool { name: name.to_string(), server: (&server).into(), tool: tool.to_string() }
}
