use numerics::contour::*; use numerics::mixture::MixtureRatio;
fn main(){
  let a: Vec<f64> = std::env::args().skip(1).map(|x| x.parse().unwrap()).collect();
  let (s,q,t,d)=(a[0],a[1],a[2],a[3]);
  let sum=SumOfLogRatios::new(vec![Part{pair:MixtureRatio::subsampled(s,q),times:t}]);
  println!("remove {:?}", sum.plain_threshold(Zone::Above,1.0,d));
  println!("add {:?}", sum.plain_threshold(Zone::Below,0.0,d));
}
