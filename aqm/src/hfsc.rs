//! HFSC, the hierarchical fair service curve: classes in a tree, each with curves of the bytes that
//! it is to have sent after a time.
//!
//! A curve has two slopes: `m1` for the time `d`, then `m2`. The real-time curve of a leaf sets a
//! time from which its next packet is eligible, and a deadline; of the leaves that are eligible the
//! one with the earliest deadline sends. If none is, the link-share curves divide what is left:
//! from the top down the class with the smallest virtual time, which its curve moves on, comes
//! next. A class with an upper-limit curve does not share while it is ahead of that.
//!
//! # Source
//! I. Stoica, H. Zhang, T. S. E. Ng, "A Hierarchical Fair Service Curve Algorithm for Link-Sharing,
//! Real-Time and Priority Service", SIGCOMM 1997; Linux 6.1 `net/sched/sch_hfsc.c`; names of
//! tc-hfsc(7) and iproute2's `tc/q_hfsc.c`.
//!
//! # Departures
//! - Filters are conditions of the leaves, in the order of the classes.
//! - Curves are exact: bytes are rounded down, times up to a nanosecond. Linux scales slopes to
//!   ticks of 64 ns.
//! - Packets without a class go first, as those of HTB, so that a tree need not name every packet;
//!   Linux drops them.
//! - A deadline is that of the packet that the leaf's `peek` shows. Linux takes the packet out, with
//!   which a law that decides on departure has decided.
//! - A leaf that holds its packets back (`tbf`, `fq`) is asked again at its own time, and nothing
//!   else is sent until then; Linux warns of such leaves.
//! - A leaf whose law discards its last packets leaves its turn to the next class.
//! - At run time curves that are changed begin anew, as in Linux; those that are not stay as they
//!   are, where `tc class change` begins all anew.
//! - `peek` shows a packet that may be next: which depends on the time.

use std::any::Any;
use std::sync::Arc;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Span, Time, configuration};

use crate::change::{fixed, parameters, valid};
use crate::discipline::{Discipline, MAX};
use crate::tree::{self, Class, LeafSpec, Leaves};
use crate::{Books, ChangeError, ClassState, Dequeue, Drops, Entry, Headers, QueueDisc, Queued, Variable};

const MANUAL: &str = "tc-hfsc(8)";

/// A service curve: bytes over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceCurve {
    /// The slope at first, in bit/s; it may be 0.
    pub m1: u64,
    /// The time for which it holds.
    pub d: Span,
    /// The slope from then on, in bit/s; it may be 0.
    pub m2: u64,
}

impl ServiceCurve {
    /// A rate from the start.
    pub const fn linear(rate: u64) -> ServiceCurve {
        ServiceCurve { m1: 0, d: Span::ZERO, m2: rate }
    }

    /// A packet of `umax` bytes within `dmax`, and this rate (`hfsc_get_sc2`).
    pub fn of_delay(umax: u64, dmax: Span, rate: u64) -> ServiceCurve {
        let slope = (u128::from(umax) * 8_000_000_000).div_ceil(u128::from(dmax.as_nanos().max(1)));
        let slope = u64::try_from(slope).unwrap_or(u64::MAX);
        if slope > rate {
            return ServiceCurve { m1: slope, d: dmax, m2: rate };
        }
        let sent = Span::from_nanos(time_of(umax, rate));
        ServiceCurve { m1: 0, d: Span::from_nanos(dmax.as_nanos().saturating_sub(sent.as_nanos())), m2: rate }
    }

    /// Its first slope is not above the second.
    fn is_convex(self) -> bool {
        self.m1 <= self.m2
    }

    fn dy(self) -> u64 {
        bytes_in(self.d.as_nanos(), self.m1)
    }
}

/// The bytes of a slope in a time, rounded down (`seg_x2y`).
fn bytes_in(nanos: u64, slope: u64) -> u64 {
    match nanos.checked_mul(slope) {
        Some(product) => product / 8_000_000_000,
        None => u64::try_from(u128::from(nanos) * u128::from(slope) / 8_000_000_000).unwrap_or(u64::MAX),
    }
}

/// The time that bytes take at a slope, rounded up (`seg_y2x`).
fn time_of(bytes: u64, slope: u64) -> u64 {
    if bytes == 0 {
        return 0;
    }
    if slope == 0 {
        return u64::MAX;
    }
    match bytes.checked_mul(8_000_000_000) {
        Some(product) => product.div_ceil(slope),
        None => u64::try_from((u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(slope))).unwrap_or(u64::MAX),
    }
}

/// A curve that begins somewhere, with a first part of its own length (`runtime_sc`).
#[derive(Clone, Copy, Debug, Default)]
struct Runtime {
    x: u64,
    y: u64,
    dx: u64,
    dy: u64,
    m1: u64,
    m2: u64,
}

impl Runtime {
    /// The curve from (x, y) on (`rtsc_init`).
    fn new(curve: ServiceCurve, x: u64, y: u64) -> Runtime {
        Runtime { x, y, dx: curve.d.as_nanos(), dy: curve.dy(), m1: curve.m1, m2: curve.m2 }
    }

    /// The time at which it has this many bytes (`rtsc_y2x`).
    fn time(&self, y: u64) -> u64 {
        if y < self.y {
            self.x
        } else if y - self.y <= self.dy {
            if self.dy == 0 {
                self.x.saturating_add(self.dx)
            } else {
                self.x.saturating_add(time_of(y - self.y, self.m1))
            }
        } else {
            self.x.saturating_add(self.dx).saturating_add(time_of(y - self.y - self.dy, self.m2))
        }
    }

    /// The eligible curve of this deadline curve (`init_ed`): for a convex one, its second slope
    /// from the start.
    fn eligible(self, of: Option<ServiceCurve>) -> Runtime {
        if of.is_some_and(ServiceCurve::is_convex) { Runtime { dx: 0, dy: 0, ..self } } else { self }
    }

    /// The bytes that it has at this time (`rtsc_x2y`).
    fn bytes(&self, x: u64) -> u64 {
        if x <= self.x {
            self.y
        } else if x - self.x <= self.dx {
            self.y.saturating_add(bytes_in(x - self.x, self.m1))
        } else {
            self.y.saturating_add(self.dy).saturating_add(bytes_in(x - self.x - self.dx, self.m2))
        }
    }

    /// The lower of itself and the curve that begins at (x, y) (`rtsc_min`).
    fn lower(&mut self, curve: ServiceCurve, x: u64, y: u64) {
        let before = self.bytes(x);
        if curve.is_convex() {
            if before >= y {
                (self.x, self.y) = (x, y);
            }
            return;
        }
        if before <= y {
            return;
        }
        let (dx, dy) = (curve.d.as_nanos(), curve.dy());
        if self.bytes(x.saturating_add(dx)) >= y.saturating_add(dy) {
            (self.x, self.y, self.dx, self.dy) = (x, y, dx, dy);
            return;
        }
        // The curves meet where the first slope has gained the difference on the second.
        let mut dx = time_of(before - y, curve.m1 - curve.m2);
        dx = dx.saturating_add(self.x.saturating_add(self.dx).saturating_sub(x));
        (self.x, self.y, self.dx, self.dy) = (x, y, dx, bytes_in(dx, curve.m1));
    }
}

/// The curves of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HfscClass {
    /// Real time: a leaf has as much at least. Default: none.
    pub rt: Option<ServiceCurve>,
    /// Link sharing: the shares of what is left. Default: none; a class above others has its `rt`.
    pub ls: Option<ServiceCurve>,
    /// Upper limit: it shares in no more. Default: none.
    pub ul: Option<ServiceCurve>,
}

impl HfscClass {
    /// The curves `rt`, `ls` and `ul` that act: a class above others shares by its only curve
    /// (`hfsc_upgrade_rt`).
    fn curves(&self, is_leaf: bool) -> [Option<ServiceCurve>; 3] {
        let HfscClass { rt, ls, ul } = *self;
        if is_leaf { [rt, ls, ul] } else { [None, ls.or(rt), ul] }
    }
}

configuration! {
/// Parameters of HFSC.
#[derive(Clone, Debug, PartialEq)]
pub struct HfscConfig<Q: LeafSpec> {
    /// The most packets without a class that wait. Default: 1000.
    pub direct_qlen: u64 = 1000 => (Domain::Packets(1, MAX), MANUAL);
    /// The leaf of packets that no filter knows. Default: none, they have no class.
    pub default: Option<Arc<str>> = None;
    /// The classes. Default: none.
    pub classes: Vec<Class<HfscClass, Q>> = Vec::new();
} problem
}

impl<Q: LeafSpec> Discipline for HfscConfig<Q> {
    fn marks(&self) -> bool {
        self.classes.iter().any(|class| class.queue.marks())
    }
}

impl<Q: LeafSpec> HfscConfig<Q> {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if let Some(problem) = tree::problem(&self.classes, self.default.as_ref()) {
            return Some(problem);
        }
        let curves = || self.classes.iter().map(|class| &class.settings);
        let is_nothing = |curve: &Option<ServiceCurve>| curve.is_some_and(|curve| curve.m1 == 0 && curve.m2 == 0);
        if self.direct_qlen == 0 {
            Some("direct_qlen must not be zero")
        } else if curves().any(|class| class.rt.is_none() && class.ls.is_none()) {
            Some("a class has `rt`, `ls` or `sc`")
        } else if curves().any(|class| [&class.rt, &class.ls, &class.ul].into_iter().any(is_nothing)) {
            Some("a curve has a slope above zero")
        } else if curves().any(|class| class.ul.is_some() && class.ls.is_none()) {
            Some("`ul` needs `ls`")
        } else {
            None
        }
    }
}

#[derive(Debug)]
struct Node {
    /// The class above; the root is the last node, and its own parent.
    parent: usize,
    rt: Option<ServiceCurve>,
    ls: Option<ServiceCurve>,
    ul: Option<ServiceCurve>,
    deadline: Runtime,
    eligible: Runtime,
    virtual_curve: Runtime,
    limit: Runtime,
    /// Bytes sent, and those by the real-time criterion alone.
    total: u64,
    cumul: u64,
    /// Deadline, eligible time, and the order of those with equal ones (`cl_d`, `cl_e`).
    d: u64,
    e: u64,
    eligible_order: u64,
    /// It is among those that wait for their eligible time.
    waits: bool,
    vt: u64,
    vtadj: u64,
    /// The time from which it fits (`cl_f`), its own and the least of the classes below.
    f: u64,
    myf: u64,
    cfmin: u64,
    cvtmin: u64,
    cvtoff: u64,
    period: u64,
    parent_period: u64,
    active: u32,
    /// It shares: it is in the trees of its parent, by virtual time and by fitting time.
    shares: bool,
    /// The order of those with equal virtual times.
    order: u64,
}

/// HFSC.
#[derive(Debug)]
pub struct Hfsc<P, Q> {
    config: HfscConfig<Q>,
    /// The classes, and the root behind them.
    nodes: Vec<Node>,
    children: Vec<Vec<usize>>,
    /// Insertions so far, which gives equals an order.
    number: u64,
    overlimits: u64,
    leaves: Leaves<P>,
}

impl<P: Queued + Send + 'static, Q: LeafSpec> Hfsc<P, Q> {
    /// Empty classes; leaves draw from streams of `random`.
    ///
    /// # Panics
    /// If the parameters have a [`HfscConfig::problem`].
    pub fn new(config: HfscConfig<Q>, random: Random) -> Hfsc<P, Q> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let parents = tree::parents(&config.classes).unwrap_or_default();
        let root = parents.len();
        let mut children = vec![Vec::new(); root + 1];
        parents.iter().enumerate().for_each(|(class, parent)| children[parent.unwrap_or(root)].push(class));
        let node = |parent: usize, settings: &HfscClass, is_leaf: bool| {
            let [rt, ls, ul] = settings.curves(is_leaf);
            let start = |curve: Option<ServiceCurve>| curve.map(|curve| Runtime::new(curve, 0, 0)).unwrap_or_default();
            let deadline = start(rt);
            Node {
                parent,
                rt,
                ls,
                ul,
                deadline,
                eligible: deadline.eligible(rt),
                virtual_curve: start(ls),
                limit: start(ul),
                total: 0,
                cumul: 0,
                d: 0,
                e: 0,
                eligible_order: 0,
                waits: false,
                vt: 0,
                vtadj: 0,
                f: 0,
                myf: 0,
                cfmin: 0,
                cvtmin: 0,
                cvtoff: 0,
                period: 0,
                parent_period: 0,
                active: 0,
                shares: false,
                order: 0,
            }
        };
        let of = |(class, of): (usize, &Class<HfscClass, Q>)| {
            node(parents[class].unwrap_or(root), &of.settings, tree::is_leaf(&parents, class))
        };
        let mut nodes: Vec<Node> = config.classes.iter().enumerate().map(of).collect();
        nodes.push(node(root, &HfscClass::default(), false));
        let leaves = Leaves::new(&config.classes, config.default.as_ref(), &random);
        Hfsc { config, nodes, children, number: 0, overlimits: 0, leaves }
    }
}

impl<P: Queued, Q: LeafSpec> Hfsc<P, Q> {
    fn change_curves(&mut self, class: usize, [rt, ls, ul]: [Option<ServiceCurve>; 3], now: u64) {
        let node = &mut self.nodes[class];
        let had = [node.rt, node.ls, node.ul];
        if had == [rt, ls, ul] {
            return;
        }
        let other = |new: Option<ServiceCurve>, old| new.filter(|_| new != old);
        if let Some(rt) = other(rt, node.rt) {
            node.deadline = Runtime::new(rt, now, node.cumul);
            node.eligible = node.deadline.eligible(Some(rt));
        }
        if let Some(ls) = other(ls, node.ls) {
            node.virtual_curve = Runtime::new(ls, node.vt, node.total);
        }
        if let Some(ul) = other(ul, node.ul) {
            node.limit = Runtime::new(ul, now, node.total);
        }
        (node.rt, node.ls, node.ul) = (rt, ls, ul);
        let Some(next) = self.leaves.peek(class).map(|entry| entry.packet.wire_len()) else { return };
        match (rt, had[0]) {
            (Some(_), Some(_)) => self.update_ed(class, next),
            (Some(_), None) => self.init_ed(class, now, next),
            (None, _) => {}
        }
        match (ls, had[1]) {
            (Some(_), Some(_)) => self.update_vf(class, 0),
            (Some(_), None) => self.init_vf(class, now),
            (None, _) => {}
        }
    }

    fn root(&self) -> usize {
        self.nodes.len() - 1
    }

    /// A leaf gets its first packet (`init_ed`).
    fn init_ed(&mut self, class: usize, now: u64, next: u32) {
        let node = &mut self.nodes[class];
        let Some(rt) = node.rt else { return };
        node.deadline.lower(rt, now, node.cumul);
        node.eligible = node.deadline.eligible(Some(rt));
        node.waits = true;
        self.update_ed(class, next);
    }

    /// The next packet of a leaf that was served by the real-time criterion (`update_ed`).
    fn update_ed(&mut self, class: usize, next: u32) {
        self.number += 1;
        let node = &mut self.nodes[class];
        node.eligible_order = self.number;
        node.e = node.eligible.time(node.cumul);
        self.update_d(class, next);
    }

    fn update_d(&mut self, class: usize, next: u32) {
        let node = &mut self.nodes[class];
        node.d = node.deadline.time(node.cumul + u64::from(next));
    }

    /// The classes below that share.
    fn sharing(&self, class: usize) -> impl Iterator<Item = usize> {
        self.children[class].iter().copied().filter(|&child| self.nodes[child].shares)
    }

    fn update_cfmin(&mut self, class: usize) {
        self.nodes[class].cfmin = self.sharing(class).map(|child| self.nodes[child].f).min().unwrap_or(0);
    }

    /// A leaf begins to share (`init_vf`).
    fn init_vf(&mut self, leaf: usize, now: u64) {
        let (mut class, mut goes_active) = (leaf, true);
        while class != self.root() {
            let parent = self.nodes[class].parent;
            if goes_active {
                self.nodes[class].active += 1;
                goes_active = self.nodes[class].active == 1;
            }
            if goes_active {
                let largest = self.sharing(parent).map(|child| self.nodes[child].vt).max();
                let (period, cvtmin, cvtoff, parent_active) = {
                    let above = &self.nodes[parent];
                    (above.period, above.cvtmin, above.cvtoff, above.active)
                };
                if largest.is_none() {
                    self.nodes[parent].cvtmin = 0;
                }
                self.number += 1;
                let number = self.number;
                let node = &mut self.nodes[class];
                match largest {
                    Some(largest) => {
                        let vt = if cvtmin == 0 { largest } else { (cvtmin + largest) / 2 };
                        if period != node.parent_period || vt > node.vt {
                            node.vt = vt;
                        }
                    }
                    None => node.vt = cvtoff,
                }
                if let Some(ls) = node.ls {
                    node.virtual_curve.lower(ls, node.vt, node.total);
                }
                node.vtadj = 0;
                node.period += 1;
                node.parent_period = period + u64::from(parent_active == 0);
                node.f = 0;
                node.shares = true;
                node.order = number;
                if let Some(ul) = node.ul {
                    node.limit.lower(ul, now, node.total);
                    node.myf = node.limit.time(node.total);
                }
            }
            self.fit(class);
            self.update_cfmin(parent);
            class = parent;
        }
    }

    /// The time from which a class fits.
    fn fit(&mut self, class: usize) {
        let node = &mut self.nodes[class];
        node.f = node.myf.max(node.cfmin);
    }

    /// A leaf has sent so many bytes (`update_vf`).
    fn update_vf(&mut self, leaf: usize, bytes: u32) {
        let mut goes_passive =
            self.leaves.len(leaf) == 0 && self.nodes[leaf].ls.is_some() && self.nodes[leaf].active > 0;
        let mut class = leaf;
        while class != self.root() {
            let parent = self.nodes[class].parent;
            let cvtmin = self.nodes[parent].cvtmin;
            let node = &mut self.nodes[class];
            node.total += u64::from(bytes);
            if node.ls.is_some() && node.active > 0 {
                if goes_passive {
                    node.active -= 1;
                    goes_passive = node.active == 0;
                }
                node.vt = node.virtual_curve.time(node.total).saturating_add(node.vtadj);
                // It was passed over because it did not fit.
                if node.vt < cvtmin {
                    node.vtadj += cvtmin - node.vt;
                    node.vt = cvtmin;
                }
                if goes_passive {
                    node.shares = false;
                    let vt = node.vt;
                    let above = &mut self.nodes[parent];
                    above.cvtoff = above.cvtoff.max(vt);
                    self.update_cfmin(parent);
                } else {
                    self.number += 1;
                    node.order = self.number;
                    if node.ul.is_some() {
                        node.myf = node.limit.time(node.total);
                    }
                    let before = node.f;
                    self.fit(class);
                    if self.nodes[class].f != before {
                        self.update_cfmin(parent);
                    }
                }
            }
            class = parent;
        }
    }

    /// A leaf has packets and did not have any.
    fn activate(&mut self, class: usize, now: u64) {
        if self.nodes[class].waits || self.nodes[class].shares {
            return;
        }
        let next = self.leaves.peek(class).map_or(0, |entry| entry.packet.wire_len());
        self.init_ed(class, now, next);
        if self.nodes[class].ls.is_some() {
            self.init_vf(class, now);
        }
    }

    /// The leaf that is eligible and has the earliest deadline (`eltree_get_mindl`).
    fn earliest_deadline(&self, now: u64) -> Option<usize> {
        let eligible = (0..self.root()).filter(|&class| self.nodes[class].waits && self.nodes[class].e <= now);
        eligible.min_by_key(|&class| {
            let Node { d, e, eligible_order, .. } = self.nodes[class];
            (d, e, eligible_order)
        })
    }

    /// The leaf that shares next (`vttree_get_minvt`).
    fn smallest_virtual_time(&mut self, now: u64) -> Option<usize> {
        let mut class = self.root();
        if self.nodes[class].cfmin > now {
            return None;
        }
        while !self.children[class].is_empty() {
            let fits = self.sharing(class).filter(|&child| self.nodes[child].f <= now);
            let next = fits.min_by_key(|&child| (self.nodes[child].vt, self.nodes[child].order))?;
            let vt = self.nodes[next].vt;
            let above = &mut self.nodes[class];
            above.cvtmin = above.cvtmin.max(vt);
            class = next;
        }
        (class != self.root()).then_some(class)
    }

    /// The next time at which there may be a packet (`hfsc_schedule_watchdog`).
    fn next_time(&self) -> Option<u64> {
        let eligible = (0..self.root()).filter(|&class| self.nodes[class].waits).map(|class| self.nodes[class].e);
        let fits = Some(self.nodes[self.root()].cfmin).filter(|&cfmin| cfmin != 0);
        eligible.chain(fits).min()
    }
}

impl<P: Queued + Send, Q: LeafSpec + Send> QueueDisc<P> for Hfsc<P, Q> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let Some(class) = self.leaves.classify(&packet) else {
            return self.leaves.enqueue_direct(now, packet, self.config.direct_qlen, drops);
        };
        self.leaves.enqueue(class, now, packet, drops);
        if self.leaves.len(class) > 0 {
            self.activate(class, now.as_nanos());
        }
    }

    fn looks(&self) -> bool {
        self.leaves.looks()
    }

    fn look(&mut self, headers: Headers<'_>) {
        self.leaves.look(headers);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        if let Some(entry) = self.leaves.dequeue_direct() {
            return Dequeue::Packet(entry);
        }
        let at = now.as_nanos();
        while self.leaves.books.backlog().packets > 0 {
            let eligible = self.earliest_deadline(at);
            let Some(class) = eligible.or_else(|| self.smallest_virtual_time(at)) else {
                self.overlimits += 1;
                let next = self.next_time().unwrap_or(0).max(at + 1);
                return Dequeue::NotBefore(Time::from_nanos(next));
            };
            let dequeued = self.leaves.dequeue(class, now, drops);
            if let Dequeue::NotBefore(_) = dequeued {
                return dequeued;
            }
            let bytes = if let Dequeue::Packet(entry) = &dequeued { entry.packet.wire_len() } else { 0 };
            self.update_vf(class, bytes);
            if eligible.is_some() {
                self.nodes[class].cumul += u64::from(bytes);
            }
            if self.nodes[class].rt.is_some() {
                match self.leaves.peek(class).map(|entry| entry.packet.wire_len()) {
                    Some(next) if eligible.is_some() => self.update_ed(class, next),
                    Some(next) => self.update_d(class, next),
                    None => self.nodes[class].waits = false,
                }
            }
            if let Dequeue::Packet(_) = dequeued {
                return dequeued;
            }
        }
        Dequeue::Empty
    }

    /// Other parameters at run time (`hfsc_change_class`): a curve that is another begins anew, now
    /// and with the bytes that were sent.
    fn change(&mut self, now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let mut config = parameters::<HfscConfig<Q>>(config)?.clone();
        tree::take_over(&mut config.classes, &self.config.classes)?;
        let curves = |class: usize| config.classes[class].settings.curves(self.children[class].is_empty());
        let lacks = |class: usize| {
            let Node { rt, ls, ul, .. } = self.nodes[class];
            curves(class).iter().zip([rt, ls, ul]).any(|(new, old)| new.is_none() && old.is_some())
        };
        fixed("the kinds of a class's curves", (0..self.root()).any(lacks))?;
        valid(config.problem())?;
        let curves: Vec<_> = (0..self.root()).map(curves).collect();
        curves.into_iter().enumerate().for_each(|(class, curves)| self.change_curves(class, curves, now.as_nanos()));
        self.config = config;
        self.leaves.set_filters(&self.config.classes, self.config.default.as_ref());
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        let waiting = (0..self.root()).filter(|&class| self.nodes[class].waits);
        let first = waiting.min_by_key(|&class| (self.nodes[class].e, self.nodes[class].d));
        self.leaves.peek_direct().or_else(|| self.leaves.peek(first?)).or_else(|| self.leaves.peek_any())
    }

    fn books(&self) -> &Books {
        &self.leaves.books
    }

    /// Those of the discipline and of the class concerned last, as `tc -s` names them.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        see("overlimits", Variable::Count(self.overlimits));
        if let Some(node) = self.nodes.get(self.leaves.touched()).filter(|_| self.nodes.len() > 1) {
            see("period", Variable::Count(node.period));
            see("work", Variable::Bytes(node.total as f64));
            see("rtwork", Variable::Bytes(node.cumul as f64));
        }
        self.leaves.variables(see);
    }

    fn classes(&self, see: &mut dyn FnMut(ClassState<'_>)) {
        let rate = |class: &HfscClass| class.rt.and_then(|rt| Rate::from_bps(rt.m2));
        self.leaves.classes(&self.config.classes, rate, see);
    }

    fn purge(&mut self, now: Time, drops: &mut Drops<P>) {
        self.leaves.purge(now, drops);
    }
}

#[cfg(test)]
mod tests;
