//! The part of the command line for servers as files.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Commands for the files of a run, without a mounted folder.
#[derive(Debug, Subcommand)]
pub enum VfsCommand {
    /// List what a directory has
    #[command(after_help = "Examples:\n  narthex vfs ls\n  narthex vfs ls 0-files/tools")]
    Ls {
        /// The directory; what does not begin with / is below /mnt/mcp
        #[arg(default_value = "/mnt/mcp")]
        path: String,
    },
    /// Print what a file has
    #[command(after_help = "Examples:\n  narthex vfs cat 0-files/tools/read_file.md\n  \
        narthex vfs cat 0-files/tools | jq -r '.tools[].name'\n  \
        narthex vfs cat 0-files/resources/file:///tmp/a.txt")]
    Cat {
        /// The file; a list, such as 0-files/tools, is what its server says
        path: String,
    },
    /// Write standard input to the file of a tool or a prompt, and print what can be read then
    #[command(after_help = "Example:\n  \
        echo '{\"path\": \"/tmp\"}' | narthex vfs write 0-files/tools/list_directory")]
    Write {
        /// The file
        path: String,
    },
    /// Call the tool of a file, with arguments as `narthex call` takes them
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
    /// Say what a path is, without asking its server
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
    The token is that of a run: in NARTHEX_TOKEN, in the file of --token-file, or that of the\n\
    daemon's own run. Needs /dev/fuse, and fusermount3 unless you are root. See\n\
    docs/reference/files.md.")]
pub struct MountArgs {
    /// The folder, which is there and empty
    pub folder: PathBuf,
    /// Mount nothing unless the token is that of the run of this number; 0 is the daemon's own
    #[arg(long, value_name = "N")]
    pub pid: Option<u64>,
    /// Go on in the background: ends once it is mounted, and says which process frees the folder
    #[arg(long)]
    pub detach: bool,
    /// Where a mount in the background says what becomes of it [default: mount.log in the data
    /// directory]
    #[arg(long, value_name = "FILE", requires = "detach")]
    pub log: Option<PathBuf>,
    /// Keep the machine's processors awake while files are used, and for two seconds after: calls
    /// are faster where processors sleep deeply, as in virtual machines, and it takes power
    #[arg(long)]
    pub low_latency: bool,
}
