//! The command line of `ackclock list`.

/// Lists what a scenario can name, with parameters, units, defaults, ranges and sources.
///
/// Without CATEGORY it prints the names in every category. Metrics are what an [[expect]] can
/// refer to; keys are those of scenario files, `[]` after a list and NAME for a name of your own.
/// Ranges are inclusive.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 if there is no such category or name.",
    after_long_help = "Exit status:\n  \
        0  the list is complete\n  \
        2  there is no such category, or nothing of this name in it\n\n\
        Examples:\n  \
        ackclock list queues\n  \
        ackclock list queues pie\n  \
        ackclock list controllers cubic --json | jq '.[].keys[].name'\n  \
        ackclock list keys links"
)]
pub(crate) struct ListArgs {
    /// queues, controllers, slow-start, detectors, hosts, applications, metrics or keys
    #[arg(value_name = "CATEGORY")]
    pub(crate) category: Option<String>,

    /// Only what has this name
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Print JSON: an array of items, or without CATEGORY an object of arrays
    #[arg(long)]
    pub(crate) json: bool,
}
