//! The part of the command line for servers as files.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands for the files of a run, without a mounted folder.
#[derive(Debug, Subcommand)]
pub enum VfsCommand {
    /// List the entries of a directory
    #[command(after_help = "Examples:\n  narthex vfs ls\n  narthex vfs ls 0-files/tools")]
    Ls {
        /// The directory; a path without a leading / is relative to /mnt/mcp
        #[arg(default_value = "/mnt/mcp")]
        path: String,
    },
    /// Print a file
    #[command(after_help = "Examples:\n  narthex vfs cat 0-files/tools/read_file.md\n  \
        narthex vfs cat 0-files/tools | jq -r '.tools[].name'\n  \
        narthex vfs cat 0-files/resources/file:///tmp/a.txt")]
    Cat {
        /// The file; a list such as 0-files/tools prints the server's answer as JSON
        path: String,
    },
    /// Write standard input to a tool or prompt, and print the result
    #[command(after_help = "Example:\n  \
        echo '{\"path\": \"/tmp\"}' | narthex vfs write 0-files/tools/list_directory")]
    Write {
        /// The file
        path: String,
    },
    /// Call the tool of a file, with the argument forms of `narthex call`
    #[command(
        after_help = "Examples:\n  narthex vfs call 0-files/tools/list_directory path=/tmp\n  \
        narthex vfs call 0-files/tools/list_directory '{\"path\": \"/tmp\"}'"
    )]
    Call {
        /// The file of the tool
        path: String,
        /// One JSON object, or key=value, key:=JSON, key=@FILE
        #[arg(value_name = "ARGUMENT")]
        arguments: Vec<String>,
    },
    /// Show the type and size of a path, without asking its server
    #[command(after_help = "Example:\n  narthex vfs stat 0-files/tools/read_file --json")]
    Stat {
        /// The path
        path: String,
    },
}

/// Shows the files of a run at a folder, for any program, until Ctrl-C or the end of the run: each
/// server is a directory, each tool a file that takes arguments and gives the result. Linux alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  mkdir mcp && narthex mount mcp --detach\n  \
    cd mcp/0-files/tools && echo '{\"path\": \"/tmp\"}' > list_directory && cat list_directory\n  \
    NARTHEX_TOKEN=… narthex mount mcp --pid 7\n\n\
    The token of the run comes from NARTHEX_TOKEN or --token-file; without them the daemon's own\n\
    run is mounted. Needs /dev/fuse, and fusermount3 unless you are root. See\n\
    docs/reference/files.md.")]
pub struct MountArgs {
    /// An existing empty folder
    pub folder: PathBuf,
    /// Mount only if the token is that of this run; 0 is the daemon's own run
    #[arg(long, value_name = "N", value_parser = super::values::count::<u64>)]
    pub pid: Option<u64>,
    /// Return once the folder is mounted, and print the id of the background process
    #[arg(long)]
    pub detach: bool,
    /// The log of a mount in the background [default: mount.log in the data directory]
    #[arg(long, value_name = "FILE", requires = "detach")]
    pub log: Option<PathBuf>,
    /// Keep the processors awake while files are used: faster on virtual machines, with more power
    #[arg(long)]
    pub low_latency: bool,
}
