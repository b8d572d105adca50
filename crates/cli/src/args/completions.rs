//! The command lines of what editors, shells and `man` are given.

use std::path::PathBuf;

use clap_complete::Shell;

/// Prints a JSON Schema of scenario files, for editors.
///
/// With taplo or the TOML extension of an editor, the first line `#:schema
/// ./scenario.schema.json` of a scenario completes keys, shows what they mean, and marks what is
/// wrong.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ackclock schema > scenario.schema.json")]
pub(crate) struct SchemaArgs {}

/// Prints completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    ackclock completions bash > ~/.local/share/bash-completion/completions/ackclock\n  \
    ackclock completions zsh > ~/.zfunc/_ackclock\n  \
    ackclock completions fish > ~/.config/fish/completions/ackclock.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the manual page, or writes one for each command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  ackclock man | man -l -\n  ackclock man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write ackclock.1, ackclock-report.1 and so on to this directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
