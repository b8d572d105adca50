//! The table of queue disciplines: one row each.
//!
//! A row has the name in scenarios, the variant of [`QueueSpec`] with the type of its
//! configuration, the configuration out of the box, and how a queue is made of it. Parameters are
//! listed beside their configuration ([`Configurable`]). Whatever goes by name, builds a queue or
//! lists parameters takes it from here, so that a discipline without a row does not exist, and one
//! with a row is complete.

use std::any::Any;

use ackclock_units::parameter::{Configurable, Visitor};
use ackclock_units::{Random, Rate, Span};

use crate::discipline::Discipline;
use crate::tree::{self, LeafSpec};
use crate::{
    Afd, AfdConfig, Avq, AvqConfig, Blue, BlueConfig, Cake, CakeConfig, Choke, ChokeConfig, Cobalt, CobaltConfig,
    Codel, CodelConfig, CurvyRed, CurvyRedConfig, DualPi2, DualPi2Config, Ets, EtsConfig, Fifo, FifoConfig, Fq,
    FqCodel, FqCodelConfig, FqConfig, FqPie, FqPieConfig, HeadDrop, HeadDropConfig, OwnQueueConfig, Pi2, Pi2Config,
    Pie, PieConfig, Prio, PrioConfig, QueueDisc, Queued, Red, RedConfig, Rem, RemConfig, Sfb, SfbConfig, Sfq,
    SfqConfig, Tbf, TbfConfig, Wred, WredConfig, hfsc, htb, qfq, series,
};

/// A class of a tree, with the settings of its scheduler.
pub type Class<S> = tree::Class<S, QueueSpec>;
/// HTB with any discipline in its leaves.
pub type Htb<P> = htb::Htb<P, QueueSpec>;
/// Parameters of HTB.
pub type HtbConfig = htb::HtbConfig<QueueSpec>;
/// HFSC with any discipline in its leaves.
pub type Hfsc<P> = hfsc::Hfsc<P, QueueSpec>;
/// Parameters of HFSC.
pub type HfscConfig = hfsc::HfscConfig<QueueSpec>;
/// QFQ with any discipline in its classes.
pub type Qfq<P> = qfq::Qfq<P, QueueSpec>;
/// Parameters of QFQ.
pub type QfqConfig = qfq::QfqConfig<QueueSpec>;
/// Any disciplines in series.
pub type Series<P> = series::Series<P, QueueSpec>;
/// Queues in series.
pub type SeriesConfig = series::SeriesConfig<QueueSpec>;
/// A queue of a series.
pub type Stage = series::Stage<QueueSpec>;

macro_rules! disciplines {
    ($($(#[$doc:meta])* $name:literal => $variant:ident($config:ty) = $default:expr,
        |$with:pat_param, $random:pat_param| $queue:expr;)*) => {
        /// A queue discipline with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueSpec {
            /// A discipline from outside.
            Own(OwnQueueConfig),
            $($(#[$doc])* $variant($config),)*
        }

        impl QueueSpec {
            /// The names of all disciplines but those from outside, in the order in which they are
            /// listed.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The discipline's name.
            pub fn name(&self) -> &'static str {
                match self {
                    QueueSpec::Own(config) => config.name(),
                    $(QueueSpec::$variant(_) => $name,)*
                }
            }

            /// The discipline called `name`, out of the box.
            pub fn by_name(name: &str) -> Option<QueueSpec> {
                match name {
                    $($name => Some(QueueSpec::$variant($default)),)*
                    _ => None,
                }
            }

            /// All disciplines out of the box, in the order of [`QueueSpec::NAMES`].
            pub fn all() -> Vec<QueueSpec> {
                vec![$(QueueSpec::$variant($default)),*]
            }

            /// The configuration, for [`QueueDisc::change`].
            pub fn config(&self) -> &dyn Any {
                match self {
                    QueueSpec::Own(config) => config,
                    $(QueueSpec::$variant(config) => config,)*
                }
            }

            /// Returns `true` if it ever marks a packet that can carry a mark (RFC 3168) instead of
            /// dropping it.
            pub fn marks(&self) -> bool {
                match self {
                    QueueSpec::Own(config) => config.marks(),
                    $(QueueSpec::$variant(config) => config.marks(),)*
                }
            }

            /// The delay that it keeps packets to, of those that are told one.
            pub fn target(&self) -> Option<Span> {
                match self {
                    QueueSpec::Own(config) => config.target(),
                    $(QueueSpec::$variant(config) => config.target(),)*
                }
            }

            /// An empty queue, with a stream for what it decides by chance.
            ///
            /// # Panics
            /// If parameters are out of range or do not fit together.
            pub fn build<P: Queued + Send + 'static>(&self, random: Random) -> Box<dyn QueueDisc<P>> {
                match self {
                    QueueSpec::Own(config) => Box::new(config.build(random)),
                    $(QueueSpec::$variant(config) => {
                        let ($with, $random) = (config.clone(), random);
                        Box::new($queue)
                    })*
                }
            }
        }

        impl Configurable for QueueSpec {
            fn parameters(&mut self, v: &mut impl Visitor) {
                match self {
                    QueueSpec::Own(config) => config.parameters(v),
                    $(QueueSpec::$variant(config) => config.parameters(v),)*
                }
            }

            fn problem(&self) -> Option<&'static str> {
                match self {
                    QueueSpec::Own(_) => None,
                    $(QueueSpec::$variant(config) => Configurable::problem(config),)*
                }
            }
        }
    };
}

disciplines! {
    /// Drop-tail, limit in packets.
    "pfifo" => Pfifo(FifoConfig) = FifoConfig::default(), |config, _| Fifo::new(config);
    /// Drop-tail, limit in bytes.
    "bfifo" => Bfifo(FifoConfig) = FifoConfig::bfifo(), |config, _| Fifo::new(config);
    /// Head drop, limit in packets.
    "pfifo_head_drop" => PfifoHeadDrop(HeadDropConfig) = HeadDropConfig::default(), |config, _| HeadDrop::new(config);
    /// RED, Linux's or its authors', adaptive or not.
    "red" => Red(RedConfig) = RedConfig::default(), |config, random| Red::new(config, random);
    /// WRED, as switches mark.
    "wred" => Wred(WredConfig) = WredConfig::default(), |config, random| Wred::new(config, random);
    /// CHOKe.
    "choke" => Choke(ChokeConfig) = ChokeConfig::default(), |config, random| Choke::new(config, random);
    /// REM.
    "rem" => Rem(RemConfig) = RemConfig::default(), |config, random| Rem::new(config, random);
    /// BLUE.
    "blue" => Blue(BlueConfig) = BlueConfig::default(), |config, random| Blue::new(config, random);
    /// Adaptive Virtual Queue.
    "avq" => Avq(AvqConfig) = AvqConfig::default(), |config, _| Avq::new(config);
    /// Approximate fair dropping.
    "afd" => Afd(AfdConfig) = AfdConfig::default(), |config, random| Afd::new(config, random);
    /// Stochastic Fair BLUE.
    "sfb" => Sfb(SfbConfig) = SfbConfig::default(), |config, random| Sfb::new(config, random);
    /// Stochastic fairness queueing.
    "sfq" => Sfq(SfqConfig) = SfqConfig::default(), |config, random| Sfq::new(config, random);
    /// Fair queueing with a rate for each flow.
    "fq" => Fq(FqConfig) = FqConfig::default(), |config, random| Fq::new(config, random);
    /// CoDel.
    "codel" => Codel(CodelConfig) = CodelConfig::default(), |config, _| Codel::new(config);
    /// fq_codel.
    "fq_codel" => FqCodel(FqCodelConfig) = FqCodelConfig::default(), |config, random| FqCodel::new(config, random);
    /// CAKE's COBALT.
    "cobalt" => Cobalt(CobaltConfig) = CobaltConfig::default(), |config, random| Cobalt::new(config, random);
    /// CAKE.
    "cake" => Cake(CakeConfig) = CakeConfig::default(), |config, random| Cake::new(config, random);
    /// PIE.
    "pie" => Pie(PieConfig) = PieConfig::default(), |config, random| Pie::new(config, random);
    /// fq_pie.
    "fq_pie" => FqPie(FqPieConfig) = FqPieConfig::default(), |config, random| FqPie::new(config, random);
    /// PI2.
    "pi2" => Pi2(Pi2Config) = Pi2Config::default(), |config, random| Pi2::new(config, random);
    /// DualPI2.
    "dualpi2" => DualPi2(DualPi2Config) = DualPi2Config::default(), |config, random| DualPi2::new(config, random);
    /// DualQ Coupled Curvy RED.
    "curvy_red" => CurvyRed(CurvyRedConfig) = CurvyRedConfig::default(), |config, random| CurvyRed::new(config, random);
    /// Strict priority by DSCP.
    "prio" => Prio(PrioConfig) = PrioConfig::default(), |config, _| Prio::new(config);
    /// Deficit round robin by DSCP.
    "drr" => Drr(EtsConfig) = EtsConfig::default(), |config, _| Ets::new(config);
    /// Strict priority, then deficit round robin, by DSCP.
    "ets" => Ets(EtsConfig) = EtsConfig::ets(), |config, _| Ets::new(config);
    /// Token bucket filter.
    "tbf" => Tbf(TbfConfig) = TbfConfig::default(), |config, _| Tbf::new(config);
    /// Hierarchical token bucket.
    "htb" => Htb(HtbConfig) = HtbConfig::default(), |config, random| Htb::new(config, random);
    /// Hierarchical fair service curve.
    "hfsc" => Hfsc(HfscConfig) = HfscConfig::default(), |config, random| Hfsc::new(config, random);
    /// Quick fair queueing by weights.
    "qfq" => Qfq(QfqConfig) = QfqConfig::default(), |config, random| Qfq::new(config, random);
    /// Queues in series.
    "series" => Series(SeriesConfig) = SeriesConfig::default(), |config, random| Series::new(config, random);
}

impl LeafSpec for QueueSpec {
    fn plain() -> QueueSpec {
        QueueSpec::Pfifo(FifoConfig::default())
    }

    fn marks(&self) -> bool {
        QueueSpec::marks(self)
    }

    fn is_tree(&self) -> bool {
        QueueSpec::is_tree(self)
    }

    fn is_series(&self) -> bool {
        matches!(self, QueueSpec::Series(_))
    }

    fn holds_back(&self) -> bool {
        match self {
            QueueSpec::Tbf(_) | QueueSpec::Htb(_) | QueueSpec::Hfsc(_) | QueueSpec::Own(_) => true,
            QueueSpec::Cake(config) => config.bandwidth.is_some(),
            QueueSpec::Fq(config) => config.maxrate.is_some(),
            _ => false,
        }
    }

    fn name(&self) -> &'static str {
        QueueSpec::name(self)
    }

    fn config(&self) -> &dyn Any {
        QueueSpec::config(self)
    }

    fn build<P: Queued + Send + 'static>(&self, random: Random) -> Box<dyn QueueDisc<P>> {
        QueueSpec::build(self, random)
    }
}

impl QueueSpec {
    /// Returns `true` if it is a tree of classes with other disciplines in it, or a series of them.
    pub fn is_tree(&self) -> bool {
        matches!(self, QueueSpec::Htb(_) | QueueSpec::Hfsc(_) | QueueSpec::Qfq(_) | QueueSpec::Series(_))
    }

    /// The names of the classes of a tree, or of the queues of a series, in their order, and the
    /// disciplines in its leaves.
    pub fn classes(&self) -> impl Iterator<Item = (&str, Option<&QueueSpec>)> {
        let htb = if let QueueSpec::Htb(config) = self { &*config.classes } else { &[] };
        let hfsc = if let QueueSpec::Hfsc(config) = self { &*config.classes } else { &[] };
        let qfq = if let QueueSpec::Qfq(config) = self { &*config.classes } else { &[] };
        let series = if let QueueSpec::Series(config) = self { &*config.stages } else { &[] };
        let series = series.iter().map(|stage| (&*stage.name, Some(&stage.queue)));
        tree::names(htb).chain(tree::names(hfsc)).chain(tree::names(qfq)).chain(series)
    }

    /// The disciplines in the leaves of a tree.
    pub fn leaves(&self) -> impl Iterator<Item = &QueueSpec> {
        self.classes().filter_map(|(_, queue)| queue)
    }

    /// The rate of a shaper that has one.
    pub fn shaped(&mut self) -> Option<&mut Rate> {
        match self {
            QueueSpec::Tbf(config) => Some(&mut config.rate),
            QueueSpec::Cake(config) => config.bandwidth.as_mut(),
            _ => None,
        }
    }

    /// Sets the hashes of the flows that filters of classes name, of which `of` knows the names.
    pub fn resolve(&mut self, of: &dyn Fn(&str) -> Vec<u64>) {
        match self {
            QueueSpec::Htb(config) => config.classes.iter_mut().for_each(|class| class.filter.resolve(of)),
            QueueSpec::Hfsc(config) => config.classes.iter_mut().for_each(|class| class.filter.resolve(of)),
            QueueSpec::Qfq(config) => config.classes.iter_mut().for_each(|class| class.filter.resolve(of)),
            QueueSpec::Series(config) => config.stages.iter_mut().for_each(|stage| stage.queue.resolve(of)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::Time;

    use super::*;
    use crate::stub::Stub;
    use crate::{ChangeError, Drops};

    #[test]
    fn every_discipline_is_found_by_its_name() {
        let all = QueueSpec::all();
        assert_eq!(all.iter().map(QueueSpec::name).collect::<Vec<_>>(), QueueSpec::NAMES);
        for spec in all {
            assert_eq!(QueueSpec::by_name(spec.name()), Some(spec));
        }
        assert_eq!(QueueSpec::by_name("fifo"), None);
    }

    /// A queue takes the parameters of its own row and of no other.
    #[test]
    fn a_queue_changes_by_its_row() {
        for (n, spec) in QueueSpec::all().iter().enumerate() {
            let mut queue = spec.build::<Stub>(Random::for_component(1, 0, spec.name()));
            for (m, other) in QueueSpec::all().iter().enumerate() {
                let changed = queue.change(Time::from_millis(1), other.config(), &mut Drops::new());
                let expected = if n == m { Ok(()) } else { Err(ChangeError::OtherDiscipline) };
                assert_eq!(changed, expected, "{} by {}", spec.name(), other.name());
            }
        }
    }

    #[test]
    fn defaults_fit_together() {
        for spec in QueueSpec::all() {
            assert_eq!(spec.problem(), None, "{}", spec.name());
        }
    }
}
