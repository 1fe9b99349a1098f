//! Frozen vectors: a change of any of these bits changes every simulated result with a seed, and
//! is a change of format. Checked by an independent evaluation of the specification in
//! 60-digit arithmetic (words exactly; Gaussians to 2 units in the last place).

use random::{Bernoulli, Binomial, Purpose, Stream};

#[test]
fn gaussians() {
    let stream = Stream::new(20_241_115, Purpose::NOISE, 3);
    let mut found = [0.0; 8];
    stream.fill_gaussians(2, 0, &mut found);
    assert_eq!(found.map(f64::to_bits), GAUSSIANS);
}

#[test]
fn a_million_gaussians() {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    let mut numbers = vec![0.0; 1000];
    for replica in 0..1000 {
        Stream::new(1, Purpose::NOISE, replica).fill_gaussians(0, 0, &mut numbers);
        for x in &numbers {
            digest = (digest ^ x.to_bits()).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    assert_eq!(digest, MILLION);
}

#[test]
fn bernoulli_and_binomial() {
    let stream = Stream::new(20_241_115, Purpose::SAMPLING, 3);
    let hits = (0..64)
        .fold(0u64, |bits, i| bits | u64::from(Bernoulli::new(0.3).draw(&stream, 0, i)) << i);
    assert_eq!(hits, HITS);
    let sizes = [
        Binomial::new(10_000_000_000, 0.1).draw(&stream, 1),
        Binomial::new(850, 0.7).draw(&stream, 2),
        Binomial::new(100, 0.01).draw(&stream, 3),
    ];
    assert_eq!(sizes, SIZES);
}

const GAUSSIANS: [u64; 8] = [
    0xbfe4_fbb7_07e8_e949,
    0x3fc6_2fa9_c041_a7fd,
    0xbfe4_5490_87b0_8b20,
    0xbfaf_4be9_d95d_75b6,
    0xbf94_462d_ee58_e616,
    0x3ff0_8247_619d_92f0,
    0xbfc4_a8dc_2eb2_d231,
    0xbfe9_4e64_26a8_61c2,
];
const MILLION: u64 = 0x2185_3312_4512_7470;
const HITS: u64 = 0x6488_4462_4060_0224;
const SIZES: [u64; 3] = [999_991_292, 589, 1];
