//! The folders in which programs of runs work.

use fs_err as fs;
use serde_json::json;

use crate::{runs::Operator, support::fixture, world::World};

/// R-E30: a program works in the project's folder if its entry asks for that, and else in the
/// daemon's folder.
#[tokio::test(flavor = "multi_thread")]
async fn r_e30_a_program_runs_in_the_folder_of_its_entry() {
    let world = World::operated(&json!({})).await;
    let operator = Operator(&world);
    let project = world.path("project");
    fs::create_dir(&project).unwrap();
    let mut attached = json!({});
    for (name, cwd) in [("asks", json!("${runtime.project_dir}")), ("plain", json!(null))] {
        let told = world.path(name);
        let script =
            format!("pwd -P > '{}'; exec '{}' --stdio", told.display(), fixture().display());
        let mut entry = json!({ "command": "sh", "args": ["-c", script] });
        if !cwd.is_null() {
            entry["cwd"] = cwd;
        }
        operator.put(&format!("mcp-servers/{name}"), &entry).await;
        attached[name] = json!({ "ref": name });
    }
    operator.put("agents/a", &json!({ "mcpServers": attached })).await;
    operator.begin(&json!({ "agent_name": "a", "project_dir": project })).await;
    let folder = |name: &str| fs::read_to_string(world.path(name)).unwrap().trim_end().to_owned();
    let real = |path: &std::path::Path| fs::canonicalize(path).unwrap().display().to_string();
    assert_eq!(folder("asks"), real(&project));
    assert_eq!(folder("plain"), real(&std::env::current_dir().unwrap()));
    world.app.drain().await;
}
