//! The interactive page: the accounting, the audit and the experiments of a folder over HTTP,
//! for the person at this machine.
//!
//! [`bind`] takes [`Settings`] and gives a [`Bound`] server, which knows its address before it
//! serves; [`Bound::serve`] blocks until it is told to stop. This is the only crate that is
//! asynchronous; what is computed is computed on threads of its own ([`work`]), so that a hard
//! question delays no easy one.
//!
//! Who may ask is decided in [`guard`], how much in [`limits`]. No request names a file: uploads
//! are read in memory, experiments are those that a scan of one folder found.

mod api;
mod assets;
mod connections;
mod error;
mod experiment_list;
mod guard;
pub mod limits;
mod work;

pub use guard::{Token, TokenError};
pub use limits::Limits;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a server is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens; port 0 takes any free one.
    pub address: SocketAddr,
    /// Asked for with every request, if there is one. Beyond loopback there must be.
    pub token: Option<Token>,
    /// The folder whose experiments are shown.
    pub folder: Option<PathBuf>,
    pub limits: Limits,
}

impl Settings {
    /// Loopback, without a token and without a folder.
    pub fn loopback(port: u16) -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            token: None,
            folder: None,
            limits: Limits::default(),
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("{0} can be reached from other machines, and no token was given")]
    NoToken(SocketAddr),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    #[error("the server failed: {0}")]
    Failed(#[from] io::Error),
}

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    settings: Settings,
}

/// Takes the address.
///
/// ```
/// let bound = server::bind(server::Settings::loopback(0))?;
/// assert!(bound.address().ip().is_loopback() && bound.address().port() > 0);
/// # Ok::<(), server::ServeError>(())
/// ```
///
/// # Errors
/// An address that is taken or not ours; one beyond loopback without a token.
pub fn bind(settings: Settings) -> Result<Bound, ServeError> {
    let asked = settings.address;
    if !asked.ip().is_loopback() && settings.token.is_none() {
        return Err(ServeError::NoToken(asked));
    }
    let listener = TcpListener::bind(asked).map_err(|error| ServeError::Listen(asked, error))?;
    let address = listener.local_addr()?;
    Ok(Bound { listener, address, settings })
}

impl Bound {
    /// Where it really listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The page's address, without the token.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Answers until `stop` is set.
    ///
    /// # Errors
    /// When the operating system refuses threads or sockets.
    pub fn serve(self, stop: &Arc<AtomicBool>) -> Result<(), ServeError> {
        self.listener.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(std::thread::available_parallelism().map_or(2, usize::from).min(4))
            .thread_name("server")
            .enable_all()
            .build()?;
        let limits = self.settings.limits;
        let router = api::router(&self.settings, self.address);
        let result = runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            connections::serve(listener, router, limits, stop).await
        });
        // A computation that is still running must not hold the process.
        runtime.shutdown_background();
        Ok(result?)
    }
}
