//! The lists of options and commands in `docs/command-line.md`, from the first line of each help
//! text: `ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock --lib args::page` writes them.

use std::fmt::Write;
use std::path::Path;

use clap::CommandFactory;

use super::Cli;

const MARKS: [&str; 2] = ["<!-- options -->", "<!-- /options -->"];

fn lists() -> String {
    let program = Cli::command();
    let mut out = String::new();
    for option in program.get_arguments().filter(|option| !option.is_positional()) {
        let value = match option.get_value_names() {
            Some([name]) if option.get_action().takes_values() => format!(" {name}"),
            _ => String::new(),
        };
        let (name, help) = (option.get_long().expect("a long name"), option.get_help().expect("a help text"));
        let _ = writeln!(out, "- `--{name}{value}`: {help}");
    }
    out.push_str("\nCommands:\n\n");
    for command in program.get_subcommands() {
        let _ = writeln!(out, "- `{}`: {}", command.get_name(), command.get_about().expect("a help text"));
    }
    out
}

#[test]
fn the_page_has_the_options_and_commands_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let found = std::fs::read_to_string(&path).expect("the page can be read");
    let [before, rest] = found.split_once(MARKS[0]).map(<[&str; 2]>::from).expect("a mark before the lists");
    let [_, after] = rest.split_once(MARKS[1]).map(<[&str; 2]>::from).expect("a mark behind the lists");
    let page = format!("{before}{}\n\n{}\n{}{after}", MARKS[0], lists(), MARKS[1]);
    if std::env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    } else {
        assert!(
            page == found,
            "docs/command-line.md does not have the lists of --help: ACKCLOCK_WRITE_DOCS=1 writes them"
        );
    }
}
