//! The only run of a scenario, which is watched or changed while it goes on.

use super::{Ran, Session};
use crate::control::{Controls, Server, Speed};
use crate::watch::{Watching, Wish};

impl Session<'_> {
    /// Does all runs as [`Session::execute`] does; watched, and listening to changes, if that is
    /// wanted.
    pub(super) fn execute_watched(&mut self, threads: usize, wish: Wish) -> anyhow::Result<Ran> {
        let (args, scenario) = (self.args, self.scenario);
        // Nobody can watch a run that is over before it is seen.
        let speed = args.speed.or((wish.dashboard && !scenario.is_live()).then_some(Speed::ONE));
        let wanted = wish.dashboard || args.control.is_some() || speed.is_some();
        let controls = wanted.then(|| Controls::of(scenario, speed));
        let _server = match (&args.control, &controls) {
            (Some(path), Some(controls)) => Some(Server::listen(path, controls)?),
            _ => None,
        };
        let watching = Watching::open(wish, scenario, controls.as_ref())?;
        Ok(self.execute(threads, controls.as_ref(), watching.as_ref()))
    }
}
