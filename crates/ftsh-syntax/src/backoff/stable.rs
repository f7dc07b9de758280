//! Delays and bounds of each policy, recorded from the first version that wrote journals.
//!
//! Journals and runs with a seed replay only while these values stay the same.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use super::{Backoff, Policy, PolicyKind};

/// Policy, the first delays in nanoseconds, and a digest of many delays and bounds.
type Recorded = (&'static str, [u64; 4], u64);

#[rustfmt::skip]
const RECORDED: &[Recorded] = &[
    ("ethernet to 1 h", [1_427_241_454, 2_183_044_766, 6_104_810_858, 11_041_969_962], 0xa3f4_a3d5_0a6e_6a7c),
    ("ethernet from 30 ms to 7 s by 1.3", [42_817_243, 42_569_372, 77_378_477, 90_972_030], 0xf9da_fbfd_ac8a_8615),
    ("ethernet from 90 s to 40 days by 10", [128_451_730_862, 982_370_145_128, 13_735_824_430_685, 124_222_162_081_283], 0x251f_0dce_7740_a9c6),
    ("exponential to 1 h", [1_000_000_000, 2_000_000_000, 4_000_000_000, 8_000_000_000], 0xae86_0687_5a07_4871),
    ("exponential from 30 ms to 7 s by 1.3", [30_000_000, 39_000_000, 50_700_000, 65_910_000], 0x52ee_9711_a3d5_d9ce),
    ("exponential from 90 s to 40 days by 10", [90_000_000_000, 900_000_000_000, 9_000_000_000_000, 90_000_000_000_000], 0x0865_6d43_8015_7ee1),
    ("full to 1 h", [427_241_454, 183_044_766, 2_104_810_858, 3_041_969_962], 0x8f58_b14b_37e4_efa7),
    ("full from 30 ms to 7 s by 1.3", [12_817_243, 3_569_372, 26_678_477, 25_062_030], 0x6f18_9d0a_90de_b1b0),
    ("full from 90 s to 40 days by 10", [38_451_730_862, 82_370_145_128, 4_735_824_430_685, 34_222_162_081_283], 0x2eb6_4bc7_c5c6_cfe7),
    ("equal to 1 h", [713_620_727, 1_091_522_383, 3_052_405_429, 5_520_984_981], 0xea72_e954_96df_fc11),
    ("equal from 30 ms to 7 s by 1.3", [21_408_621, 21_284_686, 38_689_238, 45_486_015], 0xc842_8247_e0cf_4cf5),
    ("equal from 90 s to 40 days by 10", [64_225_865_431, 491_185_072_564, 6_867_912_215_342, 62_111_081_040_641], 0x5481_da46_7dcb_c64c),
    ("decorrelated to 1 h", [1_854_482_908, 1_417_657_704, 2_711_723_281, 3_713_121_543], 0x6276_4b0b_0830_8cb3),
    ("decorrelated from 30 ms to 7 s", [55_634_487, 42_529_731, 81_351_698, 111_393_646], 0xcc15_ecea_40c2_c854),
    ("decorrelated from 90 s to 40 days", [166_903_461_725, 127_589_193_369, 244_055_095_376, 334_180_938_943], 0xac91_46ee_5898_26bd),
    ("normal to 15 min", [100_000_000, 194_557_448, 298_289_470, 605_511_492], 0x7754_7645_2d66_d70f),
    ("normal from 30 ms to 7 s by 1.3 jitter 35%", [30_000_000, 35_285_458, 8_396_518, 11_487_502], 0xcbda_a2f2_2ca1_dc46),
    ("normal from 90 s to 40 days by 10 jitter 100%", [90_000_000_000, 655_085_184_127, 0, 90_000_000_000], 0xa34d_9cbf_b7fb_95ab),
    ("proportional", [463_620_727, 443_641_787, 1_154_478_053, 1_485_415_539], 0xabcf_a399_a40f_99d0),
    ("proportional from 30 ms to 7 s by 1.3 jitter 35%", [28_472_070, 27_848_561, 51_629_934, 60_384_921], 0x6210_5e47_3387_430a),
    ("proportional from 90 s to 40 days by 10 jitter 100%", [76_903_461_725, 164_740_290_256, 9_471_648_861_370, 68_444_324_162_567], 0xb040_7e6f_2e5b_3c24),
    ("slotted to 1 h", [0, 0, 4_000_000_000, 6_000_000_000], 0x0757_6fc9_8f4c_a549),
    ("slotted from 30 ms to 7 s", [0, 0, 120_000_000, 180_000_000], 0x4729_88a1_a4a3_712d),
    ("slotted from 90 s to 40 days", [0, 0, 360_000_000_000, 540_000_000_000], 0x4416_92aa_e33c_0d47),
    ("windowed to 1 h", [427_241_454, 354_444_092, 5_027_936_170, 7_174_318_209], 0xc65b_d27c_f59e_fc56),
    ("windowed from 30 ms to 7 s", [12_817_243, 100_416_781, 945_463_133, 627_901_705], 0xd41e_f71d_c06c_fa51),
    ("windowed from 90 s to 40 days", [38_451_730_862, 65_322_298_163, 350_258_948_202, 441_644_319_423], 0x03c6_7a68_7b0f_1e1a),
    ("fixed", [1_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_000], 0x54df_f712_c7fb_227d),
    ("fixed from 30 ms", [30_000_000, 30_000_000, 30_000_000, 30_000_000], 0x6126_981f_06ce_a859),
    ("fixed from 90 s", [90_000_000_000, 90_000_000_000, 90_000_000_000, 90_000_000_000], 0x3b52_5e9f_b970_fafd),
    ("none", [0, 0, 0, 0], 0x2642_6557_08b5_6825),
];

/// Time that each attempt takes.
const ATTEMPT: Duration = Duration::from_millis(2700);

/// Returns FNV-1a over the nanoseconds of the durations.
fn digest(durations: impl Iterator<Item = Duration>) -> u64 {
    durations
        .flat_map(|it| it.as_nanos().to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
}

fn record(policy: &Policy) -> ([u64; 4], u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(29);
    let mut backoff = Backoff::new(policy.clone());
    let mut elapsed = Duration::ZERO;
    let next = |_| {
        let delay = backoff.next_delay(elapsed, &mut rng);
        elapsed += delay + ATTEMPT;
        delay
    };
    let delays: Vec<Duration> = (0..500).map(next).collect();
    let bounds = policy
        .bounds()
        .take(100)
        .flat_map(|bound| [bound.least, bound.most, bound.earliest, bound.latest]);
    let first = [0, 1, 2, 3].map(|n: usize| delays[n].as_nanos() as u64);
    (first, digest(delays.iter().copied().chain(bounds)))
}

#[test]
fn delays_of_a_seed_never_change() {
    for (text, first, digest) in RECORDED {
        let policy: Policy = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(record(&policy), (*first, *digest), "{text}");
    }
}

/// Records of remote branches hold the position, journals the name and all parameters.
#[test]
fn positions_and_parameters_in_journals_never_change() {
    let minute = Duration::from_secs(60);
    let second = Duration::from_secs(1);
    for (position, (name, from, to, by, jitter)) in [
        ("ethernet", second, minute, 2.0, 0.0),
        ("exponential", second, minute, 2.0, 0.0),
        ("full", second, minute, 2.0, 0.0),
        ("equal", second, minute, 2.0, 0.0),
        ("decorrelated", second, minute, 2.0, 0.0),
        ("normal", second / 10, minute, 2.0, 0.1),
        ("proportional", second / 2, minute, 1.5, 0.5),
        ("slotted", second, minute, 2.0, 0.0),
        ("windowed", second, minute, 2.0, 0.0),
        ("fixed", second, Duration::MAX, 1.0, 0.0),
        ("none", Duration::ZERO, Duration::ZERO, 1.0, 0.0),
    ]
    .into_iter()
    .enumerate()
    {
        let kind = PolicyKind::ALL[position];
        assert_eq!((kind as usize, kind.name()), (position, name));
        assert_eq!(Policy::new(kind), Policy { kind, from, to, by, jitter });
    }
}
