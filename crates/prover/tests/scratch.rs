use prover::arithmetic::Ball;
use prover::model::*;
use vocabulary::*;
fn show(run: Run, lens: LensName, eps: f64, guess: f64) {
    let now = std::time::Instant::now();
    let model = Model::<2>::new(&run, lens, 100).unwrap();
    for order in [Order::Remove, Order::Add] {
        let d = model.delta(Ball::from_f64(eps), order, guess.ln(), 60.0);
        match d { Ok(d) => println!("{lens} {:?} {eps} {order:?}: {:?} acc {} {} {:?}", run.phases(), d.doubles(), d.accuracy(), model.path(), now.elapsed()), Err(e) => println!("{lens} {:?} {order:?} {e}", run.phases()) }
    }
}
#[test]
fn scratch() {
    let r = |p: &[(f64,f64,u64)], g: u32, a: Adjacency| { let mut b = Run::builder().group_size(g).adjacency(a); for x in p { b = b.phase(x.0,x.1,x.2); } b.build().unwrap() };
    use Adjacency::*;
    // truth .316310672706 security
    show(r(&[(0.5,1.0,1),(1.0,0.01,100)],1,AddRemove), LensName::Composition, 0.0, 0.68);
    show(r(&[(10.0/11.0,0.999,5)],10,AddRemove), LensName::Composition, 0.0, 1.0);
    show(r(&[(4.0,1.0,1),(5.0,0.3,10)],1,AddRemove), LensName::Composition, 4.0, 4.4e-42);
    show(r(&[(1.0,1.0,1),(5.0,0.3,10)],1,AddRemove), LensName::Composition, 10.0, 5.19e-22);
    show(r(&[(1.3444905367982425, 0.9124496502840092, 1)],20,AddRemove), LensName::Composition, 459.9284863896538, 1e-124);
    show(r(&[(2.0,1.1e-5,1000000)],2,AddRemove), LensName::Composition, 0.0, 4.67e-3);
    show(r(&[(0.5876059344697525, 0.0012095671377026565,1),(2.861670399396739, 0.9999988157265957,1)],1,AddRemove), LensName::Composition, 0.0, 0.138);
    show(r(&[(1.9735394612835808,1.0,1),(5.642270326355798,0.2602181242236303,10)],1,AddRemove), LensName::Composition, 2.167082233921584, 6e-6);
    show(r(&[(1.0,0.1,3)],1,AddRemove), LensName::LastIterate, 2.222410709182349786, 1e-6);
    show(r(&[(0.5,1e-3,100000)],1,AddRemove), LensName::LastIterate, 2.9660831, 1e-6);
    show(r(&[(2.0,0.01,1000)],1,Substitute), LensName::Composition, 1.20520, 1e-5);
}
