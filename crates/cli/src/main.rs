//! The binary `ackclock`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ackclock::main_with(ackclock::built_in())
}
