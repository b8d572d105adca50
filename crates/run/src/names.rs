//! Readable names of runs, points and axes.

use ackclock_scenario::Scenario;

/// The readable name of a point: its parameters.
pub fn of_point(scenario: &Scenario, point: usize) -> String {
    let parts = parameters(scenario, point * scenario.repeat());
    if parts.is_empty() { "all runs".to_owned() } else { parts.join(", ") }
}

fn parameters(scenario: &Scenario, run: usize) -> Vec<String> {
    scenario.names(run).into_iter().map(|(axis, name)| format!("{axis} = {name}")).collect()
}

/// The readable name of a run: its parameters and, if there are several, its number.
pub fn of_run(scenario: &Scenario, run: usize) -> String {
    let mut parts = parameters(scenario, run);
    if scenario.repeat() > 1 || parts.is_empty() {
        parts.push(format!("run {}", run % scenario.repeat()));
    }
    parts.join(", ")
}
