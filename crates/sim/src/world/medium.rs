//! Links whose two directions share a medium: it takes its steps before a direction is called, and
//! the wakeups of both directions follow it.

use ackclock_emulator::Medium;
use ackclock_packet::Packet;
use ackclock_units::{Random, Time};

use super::World;
use crate::index::DirectionId;
use crate::spec::RunSpec;

/// The media of a run.
#[derive(Debug)]
pub(super) struct Media {
    /// Media by link; `None` for a link whose directions share none.
    of_links: Vec<Option<Medium>>,
}

impl Media {
    /// `None` if no link has one.
    pub(super) fn new(spec: &RunSpec) -> Option<Box<Media>> {
        let medium = |link: &crate::spec::LinkSpec| {
            let random = Random::for_component(spec.seed, spec.run, &format!("links.{}.medium", link.name));
            link.medium.clone().map(|config| Medium::new(config, random))
        };
        let of_links: Vec<Option<Medium>> = spec.links.iter().map(medium).collect();
        of_links.iter().any(Option::is_some).then(|| Box::new(Media { of_links }))
    }
}

impl World {
    /// Returns true if a direction shares a medium with the other one.
    pub(super) fn has_medium(&self, direction: DirectionId) -> bool {
        self.media.as_ref().is_some_and(|media| media.of_links[direction.link()].is_some())
    }

    /// The medium of a direction takes its steps until `now`, each at its own time.
    #[cold]
    pub(super) fn share_medium(&mut self, now: Time, direction: DirectionId) {
        let Some(mut media) = self.media.take() else { return };
        if let Some(medium) = &mut media.of_links[direction.link()] {
            let pair = direction.pair();
            loop {
                let (side, at) = medium.next();
                if at > now || at == Time::NEVER {
                    break;
                }
                self.directions[pair[side]].take_step(medium, &mut self.events);
                self.settle(pair[side]);
                medium.contend(at, pair.map(|side| self.directions[side].link()));
            }
        }
        self.media = Some(media);
    }

    /// A packet is offered to a direction: its medium has taken its steps until `now`, and may
    /// begin another one.
    #[cold]
    #[inline(never)]
    pub(super) fn offer_on_medium(&mut self, now: Time, direction: DirectionId, packet: Packet) {
        self.share_medium(now, direction);
        self.directions[direction].offer(now, packet, &mut self.events);
        self.settle(direction);
        let Some(medium) = self.media.as_mut().and_then(|media| media.of_links[direction.link()].as_mut()) else {
            let due = self.directions[direction].next_due();
            self.direction_wakeups.arm(direction.slot(), due);
            return;
        };
        let pair = direction.pair();
        medium.offered(direction.side());
        medium.contend(now, pair.map(|side| self.directions[side].link()));
        self.rearm_on_medium(direction);
    }

    /// Packets have arrived at the far end of a direction, or its medium is to take a step.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_on_medium(&mut self, now: Time, direction: DirectionId) {
        self.share_medium(now, direction);
        while let Some((at, packet)) = self.directions[direction].deliver(now, &mut self.events) {
            self.settle(direction);
            self.leaves_link(at, direction, packet);
            self.forward_to_decision(at, packet);
            if self.is_waiting() {
                break;
            }
        }
        self.settle(direction);
        self.rearm_on_medium(direction);
    }

    /// The forward direction is also called for the steps of the medium.
    fn rearm_on_medium(&mut self, direction: DirectionId) {
        let Some(medium) = self.media.as_ref().and_then(|media| media.of_links[direction.link()].as_ref()) else {
            return self.rearm_direction(direction);
        };
        let step = medium.next().1;
        let [forward, reverse] = direction.pair();
        let due = self.directions[forward].next_due().min(step);
        self.direction_wakeups.arm(forward.slot(), due);
        self.direction_wakeups.arm(reverse.slot(), self.directions[reverse].next_due());
    }
}
