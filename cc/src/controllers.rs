//! The table of congestion controllers: one row each.
//!
//! A row has the name in scenarios, the variant of [`CcSpec`] with the type of its configuration,
//! and how a controller is made of it. Parameters are listed beside their configuration
//! ([`Configurable`]); what a host has out of the box, the feedback that an algorithm needs and its
//! slow start are told there too ([`Algorithm`]). An algorithm that stacks do not share has a
//! variant for each. Whatever goes by name, builds a controller or lists parameters takes it from
//! here.

use std::sync::Arc;

use ackclock_units::Random;
use ackclock_units::parameter::{Configurable, Domain, Visitor};

use crate::algorithm::{Algorithm, Stack};
use crate::learned::{Agent, Policy};
use crate::{
    Balia, Bbr, BbrConfig, Cdg, CdgConfig, Chd, ChdConfig, CongestionControl, Cubic, CubicConfig, Dctcp, DctcpConfig,
    EcnFeedback, Hd, HdConfig, Htcp, HtcpConfig, Learner, Lia, LinuxCdg, LinuxCdgConfig, LinuxVegas, LinuxVegasConfig,
    NewReno, NewRenoConfig, Olia, OwnController, Prague, PragueConfig, Scalable, ScalableConfig, SlowStartRules, Vegas,
    VegasConfig, Westwood, WestwoodConfig, Wvegas, WvegasConfig,
};

/// The name of the host's stack that has a variant; none where there is but one.
macro_rules! stack {
    () => {
        None
    };
    ($stack:literal) => {
        Some($stack)
    };
}

/// The first of several.
macro_rules! first {
    ($first:expr $(, $other:expr)*) => {
        $first
    };
}

macro_rules! controllers {
    ($($name:literal => $($(#[$doc:meta])* $variant:ident($config:ty) $(as $stack:literal)?,
        |$with:pat_param, $random:pat_param| $controller:expr;)+)*) => {
        /// A congestion control algorithm with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum CcSpec {
            /// One from outside, with a value for each of its parameters in their order.
            Own(Arc<OwnController>, Vec<f64>),
            /// One whose decisions are made by an environment, over the controller beneath it.
            External(Arc<Agent>, Option<Box<CcSpec>>),
            /// One that does what a policy says, over the controller beneath it.
            Policy(Arc<Policy>, Option<Box<CcSpec>>),
            $($($(#[$doc])* $variant($config),)+)*
        }

        impl CcSpec {
            /// The names of all algorithms but those from outside, in the order in which they are
            /// listed.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The feedback of ECN that each of [`CcSpec::NAMES`] cannot do without.
            pub const FEEDBACK: &'static [Option<EcnFeedback>] = &[$(first!($(<$config as Algorithm>::FEEDBACK),+)),*];

            /// The algorithm's name.
            pub fn name(&self) -> &'static str {
                match self {
                    CcSpec::Own(own, _) => own.name(),
                    CcSpec::External(..) => "external",
                    CcSpec::Policy(..) => "policy",
                    $($(CcSpec::$variant(_) => $name,)+)*
                }
            }

            /// The stack of the variant, where several have an algorithm of the same name.
            pub const fn variant(&self) -> Option<&'static str> {
                match self {
                    CcSpec::Own(..) | CcSpec::External(..) | CcSpec::Policy(..) => None,
                    $($(CcSpec::$variant(_) => stack!($($stack)?),)+)*
                }
            }

            /// All variants of the algorithm called `name`, as `host` has them; none if no
            /// algorithm is called so.
            pub fn variants(name: &str, host: &Stack) -> Vec<CcSpec> {
                match name {
                    $($name => vec![$(CcSpec::$variant(Algorithm::on(host))),+],)*
                    _ => Vec::new(),
                }
            }

            fn is_of(&self, host: &Stack) -> bool {
                match self {
                    CcSpec::Own(..) | CcSpec::External(..) | CcSpec::Policy(..) => true,
                    $($(CcSpec::$variant(_) => <$config as Algorithm>::is_of(host),)+)*
                }
            }

            /// Slow start, where it is a choice; `None` if the algorithm has one of its own.
            pub fn slow_start_mut(&mut self) -> Option<&mut SlowStartRules> {
                match self {
                    CcSpec::Own(..) | CcSpec::External(..) | CcSpec::Policy(..) => None,
                    $($(CcSpec::$variant(config) => config.slow_start_mut(),)+)*
                }
            }

            /// A controller, with the stream for what it decides by chance.
            pub fn build(&self, random: Random) -> Box<dyn CongestionControl> {
                match self {
                    CcSpec::Own(own, values) => own.build(values, random),
                    CcSpec::External(agent, beneath) => {
                        Box::new(Learner::new(Arc::clone(agent), beneath.as_ref().map(|cc| cc.build(random))))
                    }
                    CcSpec::Policy(policy, beneath) => {
                        Box::new(Learner::with_policy(Arc::clone(policy), beneath.as_ref().map(|cc| cc.build(random))))
                    }
                    $($(CcSpec::$variant(config) => {
                        let ($with, $random) = (*config, random);
                        Box::new($controller)
                    })+)*
                }
            }
        }

        impl Configurable for CcSpec {
            fn parameters(&mut self, v: &mut impl Visitor) {
                match self {
                    CcSpec::Own(own, values) => {
                        for (of, value) in own.parameters().iter().zip(values) {
                            v.parameter(of.name, Domain::Number(of.min, of.max, ""), own.name(), value);
                        }
                    }
                    CcSpec::External(..) | CcSpec::Policy(..) => {}
                    $($(CcSpec::$variant(config) => config.parameters(v),)+)*
                }
            }

            fn problem(&self) -> Option<&'static str> {
                match self {
                    CcSpec::Own(..) | CcSpec::External(..) | CcSpec::Policy(..) => None,
                    $($(CcSpec::$variant(config) => Configurable::problem(config),)+)*
                }
            }
        }
    };
}

controllers! {
    "newreno" =>
        /// NewReno.
        NewReno(NewRenoConfig), |config, _| NewReno::new(config);
    "cubic" =>
        /// CUBIC.
        Cubic(CubicConfig), |config, _| Cubic::new(config);
    "cdg" =>
        /// CDG, FreeBSD's.
        Cdg(CdgConfig) as "freebsd", |config, random| Cdg::new(config, random);
        /// CDG, Linux's.
        LinuxCdg(LinuxCdgConfig) as "linux", |config, random| LinuxCdg::new(config, random);
    "hd" =>
        /// HD.
        Hd(HdConfig), |config, random| Hd::new(config, random);
    "chd" =>
        /// CHD.
        Chd(ChdConfig), |config, random| Chd::new(config, random);
    "vegas" =>
        /// Vegas, FreeBSD's.
        Vegas(VegasConfig) as "freebsd", |config, _| Vegas::new(config);
        /// Vegas, Linux's.
        LinuxVegas(LinuxVegasConfig) as "linux", |config, _| LinuxVegas::new(config);
    "htcp" =>
        /// H-TCP.
        Htcp(HtcpConfig), |config, _| Htcp::new(config);
    "scalable" =>
        /// Scalable TCP.
        Scalable(ScalableConfig), |config, _| Scalable::new(config);
    "westwood" =>
        /// Westwood+.
        Westwood(WestwoodConfig), |config, _| Westwood::new(config);
    "dctcp" =>
        /// DCTCP.
        Dctcp(DctcpConfig), |config, _| Dctcp::new(config);
    "prague" =>
        /// TCP Prague.
        Prague(PragueConfig), |config, _| Prague::new(config);
    "bbr" =>
        /// BBR.
        Bbr(BbrConfig), |config, random| Bbr::new(config, random);
    "lia" =>
        /// LIA.
        Lia(NewRenoConfig), |config, _| Lia::new(config);
    "olia" =>
        /// OLIA.
        Olia(NewRenoConfig), |config, _| Olia::new(config);
    "balia" =>
        /// BALIA.
        Balia(NewRenoConfig), |config, _| Balia::new(config);
    "wvegas" =>
        /// wVegas.
        Wvegas(WvegasConfig), |config, _| Wvegas::new(config);
}

impl CcSpec {
    /// The agent that learns, or has learned, if there is one.
    pub fn agent(&self) -> Option<&Arc<Agent>> {
        match self {
            CcSpec::External(agent, _) => Some(agent),
            CcSpec::Policy(policy, _) => Some(policy.agent()),
            _ => None,
        }
    }

    /// The algorithm called `name`, as `host` has it; the first variant if it has none of them.
    pub fn by_name(name: &str, host: &Stack) -> Option<CcSpec> {
        let mut variants = CcSpec::variants(name, host);
        let own = variants.iter().position(|spec| spec.is_of(host)).unwrap_or(0);
        (!variants.is_empty()).then(|| variants.swap_remove(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(host: &Stack) -> Vec<CcSpec> {
        CcSpec::NAMES.iter().flat_map(|name| CcSpec::variants(name, host)).collect()
    }

    #[test]
    fn every_algorithm_is_known_by_the_name_that_it_gives() {
        for linux in [false, true] {
            let host = Stack { linux, ..Stack::default() };
            for name in CcSpec::NAMES {
                let spec = CcSpec::by_name(name, &host).unwrap();
                assert_eq!(spec.name(), *name);
            }
            for spec in all(&host) {
                assert_eq!(spec.build(Random::for_component(0, 0, "any")).name(), spec.name());
            }
        }
        assert_eq!(CcSpec::by_name("reno", &Stack::default()), None);
        assert_eq!(CcSpec::NAMES.len(), CcSpec::FEEDBACK.len());
    }

    #[test]
    fn a_host_has_its_own_variant() {
        for (linux, variant) in [(false, "freebsd"), (true, "linux")] {
            let host = Stack { linux, ..Stack::default() };
            for name in ["cdg", "vegas"] {
                assert_eq!(CcSpec::by_name(name, &host).unwrap().variant(), Some(variant));
            }
        }
    }

    #[test]
    fn no_two_have_one_name_and_variant() {
        let mut names: Vec<_> = all(&Stack::default()).iter().map(|spec| (spec.name(), spec.variant())).collect();
        let rows = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), rows);
    }
}
