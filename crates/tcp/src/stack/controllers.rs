//! The congestion controllers by their names, each as a host has it out of the box: the one table from which scenarios and
//! scripts take them. Parameters are up to whoever builds one otherwise.

use ackclock_cc::{
    Bbr, BbrConfig, Cdg, Chd, ChdConfig, CongestionControl, Cubic, Dctcp, EcnFeedback, Hd, HdConfig, Htcp, HtcpConfig,
    LinuxCdg, LinuxCdgConfig, NewReno, Prague, PragueConfig, Vegas, VegasConfig, Westwood, WestwoodConfig,
};
use ackclock_units::Random;

use crate::stack::profile::Profile;

/// A congestion controller by its name.
#[derive(Debug)]
pub struct Controller {
    /// Its name in scenarios and summaries.
    pub name: &'static str,
    /// The feedback of ECN that it cannot do without (`TCP_CONG_NEEDS_ECN`, `TCP_CONG_NEEDS_ACCECN`).
    pub feedback: Option<EcnFeedback>,
    build: fn(&Profile, Random) -> Box<dyn CongestionControl>,
}

impl Controller {
    /// The one called so.
    pub fn by_name(name: &str) -> Option<&'static Controller> {
        CONTROLLERS.iter().find(|controller| controller.name == name)
    }

    /// One as a host has it, with a stream for what it decides by chance.
    pub fn build(&self, host: &Profile, random: Random) -> Box<dyn CongestionControl> {
        (self.build)(host, random)
    }
}

impl PartialEq for Controller {
    /// Names are unique.
    fn eq(&self, other: &Controller) -> bool {
        self.name == other.name
    }
}

const fn plain(name: &'static str, build: fn(&Profile, Random) -> Box<dyn CongestionControl>) -> Controller {
    Controller { name, feedback: None, build }
}

/// All of them, in the order in which they are listed.
pub static CONTROLLERS: [Controller; 11] = [
    plain("newreno", |host, _| Box::new(NewReno::new(host.newreno))),
    plain("cubic", |host, _| Box::new(Cubic::new(host.cubic))),
    plain("cdg", |host, random| {
        // Where the host does not say whose it is, it is FreeBSD's own.
        if host.is_linux() {
            Box::new(LinuxCdg::new(LinuxCdgConfig { reno: host.newreno, ..LinuxCdgConfig::default() }, random))
        } else {
            Box::new(Cdg::new(host.freebsd_cdg(), random))
        }
    }),
    plain("hd", |host, random| Box::new(Hd::new(HdConfig { reno: host.newreno, ..HdConfig::default() }, random))),
    plain("chd", |host, random| Box::new(Chd::new(ChdConfig { reno: host.newreno, ..ChdConfig::default() }, random))),
    plain("vegas", |host, _| Box::new(Vegas::new(VegasConfig { reno: host.newreno, ..VegasConfig::default() }))),
    plain("htcp", |host, _| Box::new(Htcp::new(HtcpConfig { reno: host.newreno, ..HtcpConfig::default() }))),
    plain("westwood", |host, _| {
        Box::new(Westwood::new(WestwoodConfig { reno: host.newreno, ..WestwoodConfig::default() }))
    }),
    Controller {
        name: "dctcp",
        feedback: Some(EcnFeedback::Dctcp),
        build: |host, _| Box::new(Dctcp::new(host.dctcp())),
    },
    Controller {
        name: "prague",
        feedback: Some(EcnFeedback::Accurate),
        build: |_, _| Box::new(Prague::new(PragueConfig::default())),
    },
    plain("bbr", |_, random| Box::new(Bbr::new(BbrConfig::default(), random))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_controller_is_known_by_the_name_that_it_gives() {
        for host in Profile::all() {
            for controller in &CONTROLLERS {
                let built = controller.build(&host, Random::for_component(0, 0, "any"));
                assert_eq!(built.name(), controller.name, "{}", host.name);
            }
            assert!(Controller::by_name(host.cc).is_some(), "{}", host.cc);
        }
    }

    #[test]
    fn no_two_have_one_name() {
        for (number, controller) in CONTROLLERS.iter().enumerate() {
            assert!(!CONTROLLERS[..number].contains(controller), "{}", controller.name);
        }
    }
}
