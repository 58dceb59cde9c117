//! `narthex policy`: the rules of a workspace, through the daemon. A file of rules is checked
//! without a daemon.

use std::process::ExitCode;

use narthex_client::{
    Context,
    cli::{CheckPolicyArgs, PolicyCommand},
    commands::policy::{self, counted},
    documents::text_of,
};
use narthex_control::{POLICY_SCHEMA, RuleSet};
use narthex_model::ErrorKind;
use serde_json::json;

use crate::{Failure, output};

pub(crate) async fn run(command: PolicyCommand, context: Context) -> Result<ExitCode, Failure> {
    match command {
        PolicyCommand::Show { place } => policy::show(&place, &context).await,
        PolicyCommand::Check(args) if args.server.is_none() => validate(&args, &context),
        PolicyCommand::Check(args) => policy::check(&args, &context).await,
        PolicyCommand::Schema if context.format.is_json() => {
            output::done(&json!({ "schema": POLICY_SCHEMA }))?;
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::Schema => {
            output::line(POLICY_SCHEMA.trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::Set(args) => policy::set(&args, &context).await,
        PolicyCommand::Clear { place } => policy::clear(&place, &context).await,
    }
}

/// Checks if a file could be set.
fn validate(args: &CheckPolicyArgs, context: &Context) -> Result<ExitCode, Failure> {
    let Some(file) = &args.file else {
        return Err(Failure::usage("name a file with --file, or a call with --server and --tool"));
    };
    let set = RuleSet::compile(&text_of(file)?).map_err(|faults| {
        let message = format!("{} cannot be set:\n{faults}", file.display());
        let details = Some(json!({ "faults": faults.0 }));
        Failure::new(ErrorKind::Invalid, message).with_details(details)
    })?;
    let told = json!({ "ids": set.ids().collect::<Vec<_>>() });
    output::told(&told, &format!("{}, and could be set", counted(&told)), context.format)
}
