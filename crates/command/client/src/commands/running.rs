//! The daemon that a command needs: found, or started.

use super::waiting::waiting;
use crate::{
    Context, Failure,
    data_dir::DataDir,
    starting::{Starting, Wanted},
};

/// True if a daemon of the data directory listens, or the command line names one by its address.
///
/// # Errors
/// When the data directory cannot be read.
pub fn is_up(context: &Context) -> Result<bool, Failure> {
    let options = &context.daemon;
    Ok(options.daemon_url.is_some() || DataDir::at(&options.data).running()?.is_some())
}

/// Starts the daemon of all clients, unless one of the data directory listens, and waits for it.
///
/// # Errors
/// When it cannot be started.
pub async fn ensure(context: &Context) -> Result<(), Failure> {
    let data = DataDir::open(&context.daemon.data)?;
    if data.running()?.is_some() {
        return Ok(());
    }
    let starting =
        async { Starting::begin(Wanted::default(), context).await?.listening(&data).await };
    waiting("starting the daemon", context, starting).await
}
