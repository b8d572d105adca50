//! The priority and the processors of the loop's thread.
//!
//! A thread of real-time priority runs before all others whenever it is ready, so that one that
//! never sleeps takes its processor from everything else. Two limits leave others some of it. The
//! loop itself sleeps for [`REST`] after [`BUSY`] without sleep, so that even a saturated link
//! leaves a thirteenth of the processor: more than the twentieth that the kernel would otherwise
//! enforce (`sched_rt_runtime_us`), by keeping the loop from its processor for 50 ms at a time. And
//! the kernel ends a loop that does not sleep at all, a bug, after [`LONGEST`] (`RLIMIT_RTTIME`).

use std::io;
use std::ptr;

use ackclock_sim::spec::{Priority, Scheduling};
use ackclock_units::Span;
use nix::errno::Errno;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use nix::unistd::Pid;

use crate::LiveError;

/// The longest time that a loop of real-time priority runs without sleep, and the sleep that
/// follows.
const BUSY: Span = Span::from_millis(5);
pub(super) const REST: Span = Span::from_micros(400);

/// Time without sleep after which the kernel ends the program, in microseconds.
const LONGEST: rlim_t = 1_000_000;

/// Above all programs without real-time priority, and below the kernel's threads (50).
const PRIORITY: i32 = 10;

/// The calling thread's previous scheduling, restored on drop.
#[derive(Debug, Default)]
pub(super) struct Scheduled {
    processors: Option<CpuSet>,
    limit: Option<(rlim_t, rlim_t)>,
    policy: Option<(i32, i32)>,
}

/// The processor time that a loop of real-time priority has used without sleep.
#[derive(Debug)]
pub(super) struct Budget {
    /// `None` without real-time priority.
    used: Option<Span>,
}

impl Scheduled {
    /// Checks that the thread can be scheduled as requested.
    ///
    /// # Errors
    /// [`LiveError::Missing`] if it cannot.
    pub(super) fn check(scheduling: &Scheduling) -> Result<(), LiveError> {
        Scheduled::set(scheduling).map(drop)
    }

    /// Schedules the thread as requested, until the result is dropped. Threads and programs that it
    /// starts meanwhile do not inherit real-time priority.
    pub(super) fn set(scheduling: &Scheduling) -> Result<Scheduled, LiveError> {
        let mut scheduled = Scheduled::default();
        if let Some(processors) = &scheduling.affinity {
            let before = sched_getaffinity(Pid::from_raw(0)).ok();
            bind(processors).map_err(|error| LiveError::Missing(not_there(processors, error)))?;
            scheduled.processors = before;
        }
        if scheduling.priority == Priority::Realtime {
            let before = policy();
            set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, PRIORITY)
                .map_err(|error| LiveError::Missing(not_allowed(&error)))?;
            scheduled.policy = before.ok();
            // A lower limit that is already set remains.
            let limit = getrlimit(Resource::RLIMIT_RTTIME).ok();
            if let Some((soft, hard)) = limit.filter(|&(soft, _)| soft > LONGEST) {
                let _ = setrlimit(Resource::RLIMIT_RTTIME, LONGEST, hard);
                scheduled.limit = Some((soft, hard));
            }
        }
        Ok(scheduled)
    }
}

impl Drop for Scheduled {
    fn drop(&mut self) {
        if let Some((policy, priority)) = self.policy {
            let _ = set_policy(policy, priority);
        }
        if let Some((soft, hard)) = self.limit {
            let _ = setrlimit(Resource::RLIMIT_RTTIME, soft, hard);
        }
        if let Some(processors) = &self.processors {
            let _ = sched_setaffinity(Pid::from_raw(0), processors);
        }
    }
}

fn bind(processors: &[usize]) -> nix::Result<()> {
    let mut set = CpuSet::new();
    processors.iter().try_for_each(|&processor| set.set(processor))?;
    sched_setaffinity(Pid::from_raw(0), &set)
}

// System calls, since musl's functions of these names always fail. The kernel's `sched_param`
// consists of the priority.

fn set_policy(policy: i32, priority: i32) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the call has no safe form yet")]
    // SAFETY: the priority is read during the call.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    Errno::result(set).map(drop).map_err(io::Error::from)
}

/// The policy and the priority of the calling thread.
fn policy() -> io::Result<(i32, i32)> {
    let mut priority = 0;
    let got = |call, at: *mut i32| {
        #[expect(unsafe_code, reason = "the calls have no safe form yet")]
        // SAFETY: the one call takes no pointer, and the other writes the priority.
        Errno::result(unsafe { libc::syscall(call, 0, at) }).map_err(io::Error::from)
    };
    let policy = got(libc::SYS_sched_getscheduler, ptr::null_mut())?;
    got(libc::SYS_sched_getparam, &raw mut priority)?;
    Ok((policy as i32, priority))
}

fn not_there(processors: &[usize], error: Errno) -> String {
    format!(
        "run.affinity: the loop cannot run on {processors:?}: {} (nproc and taskset -p $$ show what there is)",
        error.desc()
    )
}

fn not_allowed(error: &io::Error) -> String {
    format!(
        "run.priority: no real-time priority: {error}; it requires CAP_SYS_NICE or a limit on it (ulimit -r {PRIORITY}), and \
         in a control group a share of cpu.rt_runtime_us where the kernel has that"
    )
}

impl Budget {
    pub(super) fn new(priority: Priority) -> Budget {
        Budget { used: (priority == Priority::Realtime).then_some(Span::ZERO) }
    }

    /// Records that the loop ran.
    #[inline]
    pub(super) fn ran(&mut self, time: Span) {
        if let Some(used) = &mut self.used {
            *used += time;
        }
    }

    /// Records that the loop slept.
    pub(super) fn slept(&mut self, time: Span) {
        if let Some(used) = &mut self.used {
            *used = *used - time * (BUSY.as_nanos() / REST.as_nanos());
        }
    }

    /// Returns `true` if the loop has to sleep.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        self.used.is_some_and(|used| used >= BUSY)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_loop_of_real_time_priority_leaves_others_a_part() {
        let mut budget = Budget::new(Priority::Realtime);
        let (mut ran, mut slept) = (Span::ZERO, Span::ZERO);
        for round in 0..100_000u64 {
            let time = Span::from_micros(round % 70);
            budget.ran(time);
            ran += time;
            if budget.is_spent() {
                budget.slept(REST);
                slept += REST;
            }
        }
        // 0.4 of 5.4 ms, less the first 5.
        assert!(slept * 13 >= ran - BUSY, "{slept} of {ran}");
        // A loop that sleeps anyway is never forced to.
        let mut budget = Budget::new(Priority::Realtime);
        for _ in 0..1000 {
            budget.ran(Span::from_micros(900));
            assert!(!budget.is_spent());
            budget.slept(Span::from_micros(100));
        }
        let mut normal = Budget::new(Priority::Normal);
        normal.ran(Span::from_secs(1000));
        assert!(!normal.is_spent());
    }

    /// The policy of the calling thread, and its processors.
    fn now() -> (i32, CpuSet) {
        (policy().unwrap().0 & !libc::SCHED_RESET_ON_FORK, sched_getaffinity(Pid::from_raw(0)).unwrap())
    }

    #[test]
    fn the_thread_is_as_it_was_afterwards() {
        let before = now();
        let first = (0..CpuSet::count()).find(|&processor| before.1.is_set(processor) == Ok(true)).unwrap();
        let scheduling = Scheduling { affinity: Some(vec![first]), ..Scheduling::default() };
        let scheduled = Scheduled::set(&scheduling).unwrap();
        let bound = now().1;
        assert!((0..CpuSet::count()).all(|one| bound.is_set(one) == Ok(one == first)));
        drop(scheduled);
        assert_eq!(now(), before);
        match Scheduled::set(&Scheduling { priority: Priority::Realtime, ..scheduling }) {
            Ok(scheduled) => {
                assert_eq!(now().0, libc::SCHED_FIFO);
                // A thread that it starts does not inherit the priority.
                assert_eq!(thread::spawn(|| now().0).join().unwrap(), libc::SCHED_OTHER);
                assert_eq!(getrlimit(Resource::RLIMIT_RTTIME).unwrap().0, LONGEST);
                drop(scheduled);
            }
            Err(error) => {
                let told = error.to_string();
                ackclock_testkit::skipped("the_thread_is_as_it_was_afterwards", &told);
                assert!(told.contains("CAP_SYS_NICE"), "{told}");
            }
        }
        assert_eq!(now(), before);
    }

    #[test]
    fn processors_that_are_not_there_are_an_error() {
        for processors in [vec![1023], vec![1 << 40], Vec::new()] {
            let scheduling = Scheduling { affinity: Some(processors), ..Scheduling::default() };
            let error = Scheduled::check(&scheduling).unwrap_err().to_string();
            assert!(error.starts_with("run.affinity: the loop cannot run on ["), "{error}");
        }
    }
}
