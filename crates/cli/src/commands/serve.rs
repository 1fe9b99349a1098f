//! `serve`: the interactive page, on loopback.

use crate::console::Console;
use crate::exit;
use crate::interrupt::stop_flag;
use answers::{Kind, Refusal};
use clap::Args;
use server::{ServeError, Settings, Token, bind};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter serve
  dosimeter serve experiments/ --port 9000 --no-open
  export DOSIMETER_TOKEN=$(openssl rand -hex 16)
  dosimeter serve --listen 0.0.0.0:8710 --no-open

Only this machine can open the page. --listen lets others connect and needs a
token.
")]
pub struct ServeArgs {
    /// The folder whose experiments are shown [default: the current folder]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The port; 0 takes any free one [default: 8710, or a free one if that is taken]
    #[arg(long, value_name = "PORT", value_parser = port)]
    port: Option<u16>,
    /// Listen on this address, so that other machines can connect; needs a token
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address, conflicts_with = "port")]
    listen: Option<SocketAddr>,
    /// The secret that every request must carry (16 or more letters, digits, `-`, `_`); safer in
    /// the environment variable DOSIMETER_TOKEN, which other users cannot see
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Do not open a browser
    #[arg(long)]
    no_open: bool,
}

fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| format!("`{text}` is not a port; give a number from 0 to 65535"))
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is not an address; write it like 192.168.0.7:8710"))
}

const PORT: u16 = 8710;
const VARIABLE: &str = "DOSIMETER_TOKEN";

pub(super) fn run(args: &ServeArgs, console: &mut Console) -> Result<u8, Refusal> {
    let secret = args.token.clone().or_else(|| std::env::var(VARIABLE).ok());
    let token = secret
        .as_deref()
        .map(Token::new)
        .transpose()
        .map_err(|error| Refusal::bad_input(format!("the token is not usable: {error}")))?;
    if args.listen.is_some() && token.is_none() {
        return Err(Refusal::bad_input("--listen opens the page to others and needs a token")
            .hint(format!("set {VARIABLE} to 16 or more random letters and digits")));
    }
    let folder = args.folder.clone().unwrap_or_else(|| PathBuf::from("."));
    if !folder.is_dir() {
        return Err(Refusal::bad_input(format!("{} is not a folder", folder.display()))
            .hint("give the folder that holds your experiments, or none for this one"));
    }
    let at = |address: SocketAddr| Settings {
        address,
        token: token.clone(),
        folder: Some(folder.clone()),
        ..Settings::loopback(0)
    };
    let loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let bound = match (args.listen, args.port) {
        (Some(address), _) => bind(at(address)),
        (None, Some(port)) => bind(at(loopback(port))),
        // The usual port may be taken by another page; any other serves as well.
        (None, None) => bind(at(loopback(PORT))).or_else(|_| bind(at(loopback(0)))),
    }
    .map_err(failure)?;
    let url = bound.url();
    let link = match &secret {
        Some(secret) => format!("{url}?token={secret}"),
        None => url.clone(),
    };
    console.answer(&format!("{url}\n"))?;
    if secret.is_some() {
        console.note(&format!("open {link} once; then the browser remembers the token"));
    }
    console.note(&format!("experiments: {}; Ctrl-C stops", folder.display()));
    if !args.no_open && !open(&link) {
        console.hint("no browser could be opened; open the address yourself");
    }
    bound.serve(&stop_flag()).map_err(failure)?;
    Ok(exit::ANSWERED)
}

fn failure(error: ServeError) -> Refusal {
    match &error {
        ServeError::Failed(_) => Refusal::new(Kind::Bug, error.to_string()),
        ServeError::NoToken(_) | ServeError::Listen(..) => Refusal::bad_input(error.to_string())
            .hint("choose another port with --port, or 0 for any free one"),
    }
}

/// Asks the desktop to show a page; whether it could be asked.
fn open(link: &str) -> bool {
    let (program, before): (&str, &[&str]) = if cfg!(target_os = "macos") {
        ("open", &[])
    } else if cfg!(target_os = "windows") {
        ("explorer", &[])
    } else {
        ("xdg-open", &[])
    };
    Command::new(program)
        .args(before)
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}
