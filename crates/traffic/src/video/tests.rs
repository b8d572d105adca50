use ackclock_units::maths;

use super::*;

const MBIT: u64 = 1_000_000;

fn pattern(mbit: &[f64], adaptation: Adaptation) -> VideoPattern {
    VideoPattern {
        segment: Span::from_secs(4),
        ladder: mbit.iter().map(|&mbit| Rate::from_bps((mbit * 1e6) as u64).unwrap()).collect(),
        buffer: Span::from_secs(60),
        startup: Span::from_secs(4),
        length: None,
        variation: Distribution::constant(1.0).unwrap(),
        request: Distribution::constant(300.0).unwrap(),
        adaptation,
    }
}

fn bba() -> Adaptation {
    Adaptation::Bba(Bba { reservoir: Span::from_secs(20), cushion: Span::from_secs(35), fast_start: false })
}

fn random() -> Random {
    Random::for_component(1, 0, "video")
}

/// Plays over a link of `rate` bit/s without delay until `end`; returns the requests, with their
/// time and buffer level.
fn watch(pattern: &VideoPattern, rate: u64, end: Time) -> (Video, Vec<(Time, Span, u64)>) {
    let mut video = Video::new(pattern, random(), Time::ZERO);
    let mut asked = Vec::new();
    while video.next_at() < end {
        let now = video.next_at();
        let level = video.level(now);
        let exchange = video.make(now).expect("it is time");
        asked.push((now, level, exchange.response));
        let came = now + Span::from_nanos(exchange.response * 8_000_000_000 / rate);
        if came >= end {
            break;
        }
        video.answered(came).expect("it was asked for");
    }
    (video, asked)
}

#[test]
fn playback_begins_with_enough_in_the_buffer() {
    let mut pattern = pattern(&[1.0, 4.0], bba());
    pattern.startup = Span::from_secs(10);
    // Three segments of 4 s at 1 Mbit/s over 2 Mbit/s: 2 s each.
    let (video, _) = watch(&pattern, 2 * MBIT, Time::from_secs(60));
    assert_eq!(video.report(Time::from_secs(60)).startup, Some(Span::from_secs(6)));
    let (video, _) = watch(&pattern, 2 * MBIT, Time::from_secs(5));
    let report = video.report(Time::from_secs(5));
    assert_eq!((report.segments, report.startup, report.played), (2, None, Span::ZERO));
}

#[test]
fn a_short_video_is_played_to_its_end() {
    let mut pattern = pattern(&[1.0], bba());
    pattern.length = Some(Span::from_secs(10));
    // 4, 4 and 2 s of video in 2, 2 and 1 s.
    let (mut video, asked) = watch(&pattern, 2 * MBIT, Time::from_secs(60));
    assert_eq!(
        asked.iter().map(|&(at, _, bytes)| (at.as_nanos() / 1_000_000_000, bytes)).collect::<Vec<_>>(),
        [(0, 500_000), (2, 500_000), (4, 250_000)]
    );
    assert!(video.is_done() && video.make(Time::from_secs(60)).is_none());
    assert_eq!(video.answered(Time::from_secs(60)), None);
    let report = video.report(Time::from_secs(60));
    let seen = (report.segments, report.switches, report.startup, report.rebuffers, report.played);
    assert_eq!(seen, (3, 0, Some(Span::from_secs(2)), 0, Span::from_secs(10)));
    assert_eq!((report.rebuffering, report.bitrate), (Span::ZERO, 1e6));
    // Played from 2 s on.
    assert_eq!(video.report(Time::from_secs(5)).played, Span::from_secs(3));
}

#[test]
fn what_a_link_lacks_is_time_without_playback() {
    // A segment of 4 s takes 5 s: playback pauses for 1 s before each but the first.
    let (video, _) = watch(&pattern(&[1.25, 2.0], bba()), MBIT, Time::from_secs(501));
    let report = video.report(Time::from_secs(501));
    assert_eq!((report.segments, report.startup, report.rebuffers), (100, Some(Span::from_secs(5)), 99));
    // The hundredth came at 500 s and is being played.
    assert_eq!((report.rebuffering, report.played), (Span::from_secs(99), Span::from_secs(397)));
    // Half a second after it is over the pause counts as it is.
    let report = video.report(Time::from_nanos(504_500_000_000));
    assert_eq!((report.rebuffers, report.rebuffering), (100, Span::from_millis(99_500)));
    assert_eq!((report.played, report.bitrate), (Span::from_secs(400), 1.25e6));
}

#[test]
fn a_full_buffer_waits_for_room() {
    // At 10 Mbit/s a segment of 4 s takes 0.4 s: once the buffer is full, one each 4 s.
    let (video, asked) = watch(&pattern(&[1.0], bba()), 10 * MBIT, Time::from_secs(200));
    let full: Vec<_> = asked.iter().filter(|(at, ..)| *at > Time::from_secs(30)).collect();
    assert!(full.iter().all(|(_, level, _)| *level == Span::from_secs(56)), "{full:?}");
    assert!(full.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Span::from_secs(4)), "{full:?}");
    assert_eq!(video.report(Time::from_secs(200)).rebuffers, 0);
}

#[test]
fn bba_settles_between_the_bitrates_around_the_link() {
    // f(B) = 1 + (B - 20) 7 / 35: 2 at 25 s, 4 at 35 s. On 3 Mbit/s the buffer grows with 2 and
    // shrinks with 4: it swings between the level where f reaches 4 and the one where it falls to
    // 2, give or take what a segment adds: 4 - 8 / 3 s with 2, and 4 - 16 / 3 s with 4.
    let (video, asked) = watch(&pattern(&[1.0, 2.0, 4.0, 8.0], bba()), 3 * MBIT, Time::from_secs(4000));
    let steady: Vec<_> = asked.iter().filter(|(at, ..)| *at > Time::from_secs(200)).collect();
    let step = 4.0 / 3.0;
    for (at, level, bytes) in &steady {
        let level = level.as_secs_f64();
        assert!(level > 25.0 - step && level < 35.0 + step, "{level} at {at:?}");
        assert!([MBIT, 2 * MBIT].contains(bytes), "{bytes} bytes at {at:?}");
    }
    // What comes is what plays: the mean bitrate is the link's.
    let volume: u64 = steady.iter().map(|(.., bytes)| bytes * 8).sum();
    let mean = volume as f64 / (steady.len() as f64 * 4.0);
    assert!((mean / 3e6 - 1.0).abs() < 0.01, "{mean}");
    let report = video.report(Time::from_secs(4000));
    assert_eq!((report.rebuffers, report.startup), (0, Some(Span::from_nanos(1_333_333_333))));
    assert!(report.switches > 20 && (report.bitrate / 3e6 - 1.0).abs() < 0.02, "{report:?}");
}

#[test]
fn bola_settles_around_its_threshold() {
    // 15 segments in the buffer: V = 14 / (ln 8 + 5). Between 2 and 4 Mbit/s at
    // V (5 + 2 ln 2 - ln 4) = 5 V segments of 4 s.
    let adaptation = Adaptation::Bola(Bola { gamma_p: 5.0 });
    let (video, asked) = watch(&pattern(&[1.0, 2.0, 4.0, 8.0], adaptation), 3 * MBIT, Time::from_secs(4000));
    let threshold = 4.0 * 5.0 * 14.0 / (maths::ln(8.0) + 5.0);
    let steady = asked.iter().filter(|(at, ..)| *at > Time::from_secs(200));
    for (at, level, bytes) in steady {
        let level = level.as_secs_f64();
        assert!((level - threshold).abs() <= 4.0 / 3.0, "{level} at {at:?}, around {threshold}");
        assert_eq!(*bytes, if level >= threshold { 2 * MBIT } else { MBIT }, "{level} at {at:?}");
    }
    assert_eq!(video.report(Time::from_secs(4000)).rebuffers, 0);
}

#[test]
fn segments_vary_around_their_bitrate() {
    let mut pattern = pattern(&[1.0], bba());
    pattern.variation = Distribution::log_normal_with_mean(1.0, 0.3).unwrap();
    let (_, asked) = watch(&pattern, 10 * MBIT, Time::from_secs(40_000));
    let mean = asked.iter().map(|&(.., bytes)| bytes).sum::<u64>() as f64 / asked.len() as f64;
    // 10,000 segments with a deviation of 0.3: 0.3 %.
    assert!((mean / 500_000.0 - 1.0).abs() < 0.01, "{mean}");
    assert!(asked.iter().any(|&(.., bytes)| bytes < 400_000) && asked.iter().any(|&(.., bytes)| bytes > 600_000));
}
