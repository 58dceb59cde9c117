//! Names of environment variables that change what a program is.

/// The beginning of the names that are narthex's own.
pub const OWN_PREFIX: &str = "NARTHEX_";

/// Beginnings of names that dynamic linkers, shells and git read.
const STEERING_PREFIXES: [&str; 4] = ["LD_", "DYLD_", "BASH_FUNC_", "GIT_CONFIG"];

/// Names that loaders, shells, interpreters and common tools read to find or run code.
const STEERING: [&str; 66] = [
    "BASHOPTS",
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "CDPATH",
    "CLASSPATH",
    "CORECLR_PROFILER",
    "CORECLR_PROFILER_PATH",
    "DOTNET_ADDITIONAL_DEPS",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ELECTRON_RUN_AS_NODE",
    "ENV",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NPM_CONFIG_NODE_OPTIONS",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_SCRIPT_SHELL",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PATH",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC_WRAPPER",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "VISUAL",
    "_JAVA_OPTIONS",
];

/// True if a variable of this name changes the code that a program loads or runs, instead of
/// passing it a value.
#[must_use]
pub fn steers_programs(name: &str) -> bool {
    STEERING.contains(&name) || STEERING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X-E59.
    #[test]
    fn variables_that_steer_programs_are_recognized() {
        let is_sorted = STEERING.windows(2).all(|two| two[0] < two[1]);
        assert!(is_sorted, "sorted, so that a name is found by eye, and stands there once");
        for name in ["PATH", "LD_PRELOAD", "DYLD_INSERT_LIBRARIES", "NODE_OPTIONS", "ENV", "IFS"] {
            assert!(steers_programs(name), "{name}");
        }
        for name in ["GITHUB_TOKEN", "API_PATH", "NODE_ENV", "LDAP_URL", "PYTHON", "ENVIRONMENT"] {
            assert!(!steers_programs(name), "{name}");
        }
    }
}
