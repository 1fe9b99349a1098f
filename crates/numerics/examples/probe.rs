use numerics::contour::*; use numerics::mixture::MixtureRatio;
fn main(){
  let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
  let (s,q,t,d)=(a[0],a[1],a[2],a[3]);
  let sum=SumOfLogRatios::new(vec![Part{pair:MixtureRatio::subsampled(s,q),times:t}]);
  let r=sum.threshold(Zone::Above,1.0,d);
  println!("remove {:?}", r.map(|e|(e.value,(e.upper-e.lower)/e.value)));
  let r2=sum.threshold(Zone::Below,0.0,d);
  println!("add {:?}", r2.map(|e|(-e.value,(e.upper-e.lower)/e.value)));
  println!("bayes {:?}", sum.average(Zone::Between,1.0,0.0).map(|e|(e.value,(e.upper-e.lower)/e.value)));
  let n=200; let st=std::time::Instant::now(); for _ in 0..n { let _=std::hint::black_box(sum.threshold(Zone::Above,1.0,d)); }
  println!("remove us {}", st.elapsed().as_secs_f64()/n as f64*1e6);
  let st=std::time::Instant::now(); for _ in 0..n { let _=std::hint::black_box(sum.threshold(Zone::Below,0.0,d)); }
  println!("add us {}", st.elapsed().as_secs_f64()/n as f64*1e6);
}
