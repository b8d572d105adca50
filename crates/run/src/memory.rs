//! The check, before a scenario's runs start, that they fit into the machine's memory.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use ackclock_scenario::{Memory, Scenario};
use anyhow::bail;

use crate::selection::Selection;

/// Plans the number of simultaneous runs: as many as `asked`, or else as there are cores or as fit
/// into memory. Fails if the flows of those runs need more memory than there is. That their packets
/// could need more is only a note: windows need not fill the queues. Nothing is checked where the
/// system does not tell how much memory it has. The runs may use `limit` bytes of it.
pub fn plan(
    scenario: &Scenario,
    selection: &Selection,
    asked: Option<usize>,
    cores: usize,
    limit: Option<u64>,
) -> anyhow::Result<(usize, Option<String>)> {
    let Some(available) = available().into_iter().chain(limit).min() else {
        return Ok((asked.unwrap_or(cores), None));
    };
    let kept = kept(scenario, selection);
    if kept > available {
        bail!(
            "{} runs leave about {} in memory until all have finished, and {} are available",
            selection.count(),
            mib(kept),
            mib(available)
        );
    }
    fits(scenario, selection, asked, cores, available)
}

/// Bytes kept of all runs until the last one has finished: the measures that expectations judge,
/// which are 16 bytes each, and the draws of a sample.
fn kept(scenario: &Scenario, selection: &Selection) -> u64 {
    (selection.count() as u64).saturating_mul(24 + 16 * scenario.expectations() as u64)
}

fn fits(
    scenario: &Scenario,
    selection: &Selection,
    asked: Option<usize>,
    cores: usize,
    available: u64,
) -> anyhow::Result<(usize, Option<String>)> {
    let mut points = scenario.memory();
    if let Some(chosen) = selection.points(scenario) {
        // A sweep of many points may have read none of those in advance.
        let known = points.iter().any(|(point, ..)| chosen.contains(point));
        points.retain(|(point, ..)| !known || chosen.contains(point));
    }
    points.sort_by_key(|(_, memory, _)| Reverse(memory.total()));
    // The largest so many runs, by their totals and by what they need at least.
    let sum = |runs: usize, of: fn(&Memory) -> u64| {
        let largest = points.iter().flat_map(|point| std::iter::repeat_n(point, scenario.repeat()));
        largest.take(runs).fold(0, |sum: u64, (_, memory, _)| sum.saturating_add(of(memory)))
    };
    let at_once = asked.unwrap_or(1).max(1).min(selection.count());
    let help = if at_once > 1 { "; --threads sets how many runs go on at the same time" } else { "" };
    let runs = match at_once {
        1 => "the run needs".to_owned(),
        runs => format!("{runs} runs at the same time need"),
    };
    let least = sum(at_once, Memory::without_packets);
    let available_mib = mib(available);
    if least > available
        && let Some((_, memory, keys)) = points.first()
    {
        let largest = memory.groups.iter().zip(keys).max_by_key(|(bytes, _)| **bytes);
        let flows = largest.map(|(&bytes, key)| format!(": the flows of `{key}` take {}", mib(bytes)));
        bail!(
            "{runs} about {} of memory, and {available_mib} are available{}{help}",
            mib(least),
            flows.unwrap_or_default()
        );
    }
    let fewer = || (1..=cores).rev().find(|&runs| sum(runs, Memory::total) <= available).unwrap_or(1);
    let total = sum(at_once, Memory::total);
    let note = (total > available).then(|| {
        format!(
            "note: {runs} up to {} of memory if its queues and windows fill (`limit` of queues, `delay` and `rate` of \
             links, buffers of hosts), and {available_mib} are available{help}",
            mib(total)
        )
    });
    Ok((asked.unwrap_or_else(fewer), note))
}

/// The size in whole mebibytes, rounded up.
pub fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// The memory that this process may still take, as far as the machine, its control groups and the
/// process' own limit (`ulimit -v`) tell.
fn available() -> Option<u64> {
    let text = |file: &str| fs::read_to_string(file).unwrap_or_default();
    let machine = of_machine(&text("/proc/meminfo"))?;
    let groups = text("/proc/self/cgroup");
    let limits = groups.lines().filter_map(|line| of_group(line, Path::new("/sys/fs/cgroup")));
    Some(limits.chain(of_process(&text("/proc/self/limits"), &text("/proc/self/status"))).fold(machine, u64::min))
}

/// The address space that a process has left by its soft limit, from its `limits` and `status` in
/// `/proc`; `None` without a limit.
fn of_process(limits: &str, status: &str) -> Option<u64> {
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit = limit.split_whitespace().next()?.parse::<u64>().ok()?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let size = size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
    Some(limit.saturating_sub(size.saturating_mul(1024)))
}

/// The available memory, from `/proc/meminfo`.
fn of_machine(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The memory that the control group of a line in `/proc/PID/cgroup` leaves, if it or one above has
/// a limit.
fn of_group(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?.trim_start_matches('/'));
    let (root, limit, usage) = match controllers {
        "" => (root.to_owned(), "memory.max", "memory.current"),
        _ if controllers.split(',').any(|name| name == "memory") => {
            (root.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
        }
        _ => return None,
    };
    // The groups above have limits as well, and in a container only the uppermost may be in sight.
    let folder = root.join(path);
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(&root));
    folders.filter_map(|folder| left(folder, limit, usage)).min()
}

/// The memory that the control group of a folder leaves, if it has a limit.
fn left(folder: &Path, limit: &str, usage: &str) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    // `max` is no number: no limit.
    let (limit, usage) = (number(limit)?, number(usage)?);
    // Files that are cached give way.
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    let of = |name| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    let cached = of("total_inactive_file ").or_else(|| of("inactive_file ")).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cached)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(more: &str) -> Scenario {
        let text = format!(
            "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"1gbit\"\ndelay = \"10ms\"\n\
             [[flows]]\nid = \"few\"\npath = [\"a\"]\n{more}"
        );
        Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_limit_of_the_process_counts() {
        let status = "Name:\tackclock\nVmPeak:\t  6000 kB\nVmSize:\t    5000 kB\n";
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max open files            1024                 524288               files     \n\
                     Max address space         {soft:<20} unlimited            bytes     \n"
            )
        };
        assert_eq!(of_process(&limits("3072000000"), status), Some(3_072_000_000 - 5_120_000));
        assert_eq!(of_process(&limits("1024"), status), Some(0));
        assert_eq!(of_process(&limits("unlimited"), status), None);
    }

    fn all_fit(
        scenario: &Scenario,
        asked: Option<usize>,
        cores: usize,
        available: u64,
    ) -> anyhow::Result<(usize, Option<String>)> {
        fits(scenario, &Selection::of(scenario, None, None)?, asked, cores, available)
    }

    #[test]
    fn what_does_not_fit_is_told_with_what_takes_most() {
        let many = scenario("[[flows]]\nid = \"many\"\npath = [\"a\"]\ncount = 50_000\n");
        assert_eq!(all_fit(&many, None, 1, 4 << 30).ok(), Some((1, None)));
        let error = all_fit(&many, None, 1, 64 << 20).unwrap_err().to_string();
        assert!(error.starts_with("the run needs about ") && error.contains("and 64 MiB are available"), "{error}");
        assert!(error.contains("the flows of `flows.many.count` take "), "{error}");
    }

    #[test]
    fn a_queue_without_limit_holds_what_windows_do() {
        let text = "schema = 1\n[run]\nduration = \"10s\"\n[links.a]\nrate = \"1gbit\"\ndelay = \"10ms\"\n\
                    queue = { kind = \"pfifo\", limit = \"1000000000p\" }\n[[flows]]\nid = \"few\"\npath = [\"a\"]\n";
        let few = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(all_fit(&few, Some(1), 1, 64 << 20).ok(), Some((1, None)));
    }

    #[test]
    fn packets_that_may_not_fit_are_told_and_not_refused() {
        let text = "schema = 1\n[run]\nduration = \"60s\"\n[links.a]\nrate = \"10gbit\"\ndelay = \"50ms\"\n\
                    queue = { kind = \"pfifo\", limit = \"1000000p\" }\n[[flows]]\nid = \"few\"\npath = [\"a\"]\n\
                    count = 4\nreceive_buffer = \"400MB\"\nsend_buffer = \"400MB\"\n";
        let few = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        let (threads, note) = all_fit(&few, None, 2, 64 << 20).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(threads, 1);
        let note = note.expect("there is room for a million packets");
        assert!(note.starts_with("note: the run needs up to ") && note.contains("64 MiB are available"), "{note}");
        assert_eq!(all_fit(&few, None, 2, 1 << 40).ok(), Some((2, None)));
    }

    #[test]
    fn runs_at_the_same_time_add_up() {
        let sweep = scenario("count = 20_000\n[sweep]\nrepeat = 3\naxes.\"flows.few.count\" = [10, 20_000]\n");
        let one = sweep.memory()[1].1.without_packets();
        let total = sweep.memory()[1].1.total();
        assert!(sweep.memory()[0].1.total() < one);
        assert_eq!(all_fit(&sweep, Some(1), 8, total).ok(), Some((1, None)));
        let error = all_fit(&sweep, Some(2), 8, 2 * one - 1).unwrap_err().to_string();
        assert!(error.starts_with("2 runs at the same time need about ") && error.contains("--threads"), "{error}");
        assert_eq!(all_fit(&sweep, Some(2), 8, 2 * total).ok(), Some((2, None)));
        // There are three large ones.
        assert!(all_fit(&sweep, Some(16), 8, 3 * one - 1).is_err());
        assert_eq!(all_fit(&sweep, Some(16), 8, 4 * total).ok(), Some((16, None)));
        // The small ones alone do.
        let only = "0-2".parse().expect("it is well-formed");
        let small = Selection::of(&sweep, Some(&only), None).expect("they are there");
        assert_eq!(fits(&sweep, &small, Some(2), 8, one).ok(), Some((2, None)));
        // The number of runs is reduced if it was not asked for.
        assert_eq!(all_fit(&sweep, None, 8, 2 * total).ok(), Some((2, None)));
        assert_eq!(all_fit(&sweep, None, 8, 4 * total).ok(), Some((8, None)));
        assert!(all_fit(&sweep, None, 8, one - 1).is_err());
    }

    #[test]
    fn the_memory_of_the_machine_and_of_a_group() {
        let meminfo = "MemTotal:       24684012 kB\nMemFree: 1 kB\nMemAvailable:   20689000 kB\n";
        assert_eq!(of_machine(meminfo), Some(20_689_000 << 10));
        assert_eq!(of_machine("MemTotal: 1 kB\n"), None);
        let root = std::env::temp_dir().join(format!("ackclock-memory-{}", std::process::id()));
        let group = root.join("a/b");
        fs::create_dir_all(&group).expect("the folder can be made");
        let write = |name: &str, text: &str| fs::write(group.join(name), text).expect("the file can be written");
        write("memory.max", "max\n");
        write("memory.current", "700\n");
        assert_eq!(of_group("0::/a/b", &root), None);
        write("memory.max", "1000\n");
        assert_eq!(of_group("0::/a/b", &root), Some(300));
        write("memory.stat", "anon 500\ninactive_file 200\n");
        assert_eq!(of_group("0::/a/b", &root), Some(500));
        fs::write(root.join("a/memory.max"), "450").expect("the file can be written");
        fs::write(root.join("a/memory.current"), "50").expect("the file can be written");
        assert_eq!(of_group("0::/a/b", &root), Some(400), "the group above has less");
        assert_eq!(of_group("4:cpu:/a/b", &root), None);
        let old = root.join("memory");
        fs::create_dir_all(&old).expect("the folder can be made");
        fs::write(old.join("memory.limit_in_bytes"), "1000").expect("the file can be written");
        fs::write(old.join("memory.usage_in_bytes"), "900").expect("the file can be written");
        fs::write(old.join("memory.stat"), "inactive_file 1\ntotal_inactive_file 50\n").expect("it can be written");
        assert_eq!(of_group("5:cpu,memory:/not/in/sight", &root), Some(150));
        assert_eq!(of_group("nonsense", &root), None);
        fs::remove_dir_all(&root).expect("it is ours");
    }
}
