//! The options that the adapters of local agents pass, and the help in which each must be listed: what a
//! version does not list is not passed silently, and the way is not there. Runs nothing.

/// What is asked for help, and what must stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags {
    /// The arguments that print the help.
    pub help: &'static [&'static str],
    /// The options, as they are passed.
    pub required: &'static [&'static str],
}

/// Claude Code.
pub const CLAUDE: Flags = Flags {
    help: &["--help"],
    required: &[
        "-p",
        "--output-format",
        "--verbose",
        "--model",
        "--json-schema",
        "--tools",
        "--strict-mcp-config",
        "--disable-slash-commands",
        "--safe-mode",
        "--setting-sources",
        "--no-session-persistence",
    ],
};

/// Codex.
pub const CODEX: Flags = Flags {
    help: &["exec", "--help"],
    required: &[
        "--json",
        "--ephemeral",
        "--ignore-user-config",
        "--ignore-rules",
        "--skip-git-repo-check",
        "--sandbox",
        "-C",
        "-m",
        "-c",
        "--output-schema",
        "-o",
    ],
};

impl Flags {
    /// The required options that a help text does not list.
    pub fn missing(&self, help: &str) -> Vec<&'static str> {
        self.required.iter().copied().filter(|flag| !lists(help, flag)).collect()
    }
}

/// Whether a help text lists an option. An option is a word of its own: `--json` does not stand in
/// `--json-schema`.
pub fn lists(help: &str, flag: &str) -> bool {
    help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_a_word_of_its_own() {
        let flags = Flags { help: &[], required: &["-o", "--json", "--model"] };
        let all = "  -o, --output-last-message <FILE>\n  --json=<X>  prints\n  -m,--model[=MODEL]";
        assert_eq!(flags.missing(all), Vec::<&str>::new());
        assert_eq!(flags.missing("--json-schema --models -output no-o"), ["-o", "--json", "--model"]);
        assert_eq!(flags.missing(""), ["-o", "--json", "--model"]);
    }
}
