//! The congestion controllers by their names, each as a host has it out of the box: the table of
//! `cc`, from which scenarios and scripts take them, over the settings of a [`Profile`].

use ackclock_cc::{CcSpec, CongestionControl, EcnFeedback, Stack};
use ackclock_units::Random;

use crate::stack::profile::Profile;

/// A congestion controller by its name.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// Its name in scenarios and summaries.
    pub name: &'static str,
    /// The feedback of ECN that it cannot do without (`TCP_CONG_NEEDS_ECN`,
    /// `TCP_CONG_NEEDS_ACCECN`).
    pub feedback: Option<EcnFeedback>,
}

impl Controller {
    /// The one called so.
    pub fn by_name(name: &str) -> Option<&'static Controller> {
        CONTROLLERS.iter().find(|controller| controller.name == name)
    }

    /// One as a host has it, with a stream for what it decides by chance.
    pub fn build(&self, host: &Profile, random: Random) -> Box<dyn CongestionControl> {
        let spec = CcSpec::by_name(self.name, &host.stack());
        spec.unwrap_or_else(|| unreachable!("`{}` is in the table of controllers", self.name)).build(random)
    }
}

impl PartialEq for Controller {
    /// Names are unique.
    fn eq(&self, other: &Controller) -> bool {
        self.name == other.name
    }
}

/// All of them, in the order in which they are listed.
pub static CONTROLLERS: [Controller; CcSpec::NAMES.len()] = {
    let mut all = [Controller { name: "", feedback: None }; CcSpec::NAMES.len()];
    let mut number = 0;
    while number < all.len() {
        all[number] = Controller { name: CcSpec::NAMES[number], feedback: CcSpec::FEEDBACK[number] };
        number += 1;
    }
    all
};

impl Profile {
    /// The settings that controllers take from the host.
    pub fn stack(&self) -> Stack {
        Stack {
            linux: self.is_linux(),
            late_ack_events: self.late_ack_events,
            newreno: self.newreno,
            cubic: self.cubic,
            dctcp: self.dctcp(),
            freebsd_cdg: self.freebsd_cdg(),
        }
    }
}

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

    #[test]
    fn cdg_is_the_hosts_own() {
        for host in Profile::all() {
            let variant = CcSpec::by_name("cdg", &host.stack()).and_then(|spec| spec.variant());
            assert_eq!(variant, Some(if host.is_linux() { "linux" } else { "freebsd" }), "{}", host.name);
        }
    }
}
