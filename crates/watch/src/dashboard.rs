//! The dashboard: draws the board some times a second, and takes keys, while a run goes on.

use std::env;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEventKind};

use super::feed::Watch;
use super::state::{RunControl, State, Wish};
use super::terminal::{self, Input, Screen};
use super::view::{self, Theme};

/// Time that the dashboard waits for a key before it draws again.
const TICK: Duration = Duration::from_millis(50);

/// Keys between two frames: who holds one down sees what it does.
const KEYS: usize = 16;

/// Shows a run until it is over, or the person leaves.
///
/// # Errors
/// The terminal does not work any more.
pub(super) fn show(watch: &Watch, change: &impl RunControl, over: &AtomicBool) -> io::Result<()> {
    let mut screen = Screen::take()?;
    let theme = Theme { colour: env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) };
    let mut state = State::new(change.pace());
    while !over.load(Ordering::Relaxed) {
        state.follow(change);
        if let Some(speed) = state.speed {
            watch.go_at(speed);
        }
        // The board is free again before a slow terminal has the frame.
        screen.draw(|frame| view::draw(frame, &watch.board(), &state, theme))?;
        let mut patience = TICK;
        for _ in 0..KEYS {
            match terminal::wait(patience)? {
                Input::None => break,
                Input::Gone => {
                    ackclock_live::interrupt();
                    return Ok(());
                }
                Input::Some => {}
            }
            patience = Duration::ZERO;
            let Event::Key(key) = event::read()? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            let wish = state.key(key, &watch.board(), change);
            match wish {
                Wish::Nothing => {}
                Wish::End | Wish::Leave => ackclock_live::interrupt(),
            }
            if wish == Wish::Leave {
                return Ok(());
            }
        }
    }
    Ok(())
}
