//! Ctrl-C once: finish what is in hand and stop; twice: stop now. Both leave resumable work.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// A flag that becomes true at the first Ctrl-C (or polite termination); the second one ends the
/// process with exit code 130.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    let flag = FLAG.get_or_init(|| {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The order matters: the shutdown looks at the flag before this signal sets it. A
            // platform without such signals keeps its own way of stopping.
            let _ = flag::register_conditional_shutdown(
                signal,
                crate::exit::INTERRUPTED.into(),
                Arc::clone(&stop),
            );
            let _ = flag::register(signal, Arc::clone(&stop));
        }
        stop
    });
    Arc::clone(flag)
}
