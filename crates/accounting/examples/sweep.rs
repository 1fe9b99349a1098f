use accounting::pairs::{Composed, OneWay, Pair};
use std::io::BufRead;
fn main() {
    // lines: sigma q T delta expected digits
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let f: Vec<&str> = line.split_whitespace().collect();
        let v: Vec<f64> = f.iter().map(|x| x.parse().unwrap()).collect();
        let run = vocabulary::Run::builder().phase(v[0], v[1], v[2] as u64).build().unwrap();
        let st = std::time::Instant::now();
        let pair = Composed::for_run(&run).unwrap();
        let r = pair.epsilon(v[3], OneWay::Remove);
        let us = st.elapsed().as_micros();
        let a = pair.epsilon(v[3], OneWay::Add);
        let us2 = st.elapsed().as_micros() - us;
        match (&r, &a) {
            (Ok(r), Ok(a)) => {
                let m = r.max(*a);
                println!("{line} -> {:.12} err {:+.1e} width {:.1e} inside {} us {us} {us2}", m.value, m.value / v[4] - 1.0, m.relative_width(), m.lower <= v[4]*(1.0+10f64.powf(-v[5])) && v[4]*(1.0-10f64.powf(-v[5])) <= m.upper);
            }
            _ => println!("{line} -> {} / {} us {us} {us2}", r.map_or("FAIL".into(), |x| format!("{:.10}", x.value)), a.map_or("FAIL".into(), |x| format!("{:.10} w{:.1e}", x.value, x.relative_width()))),
        }
    }
}
