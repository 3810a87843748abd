//! Servers with TLS.

use std::io::Write;
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use chronosym_symbols::store::{AttemptResult, NoFile};

use super::server::{Reply, Server};
use super::{GUID, Setup, foo, found, missing, trials, windows};

const SERVER: &str = "CHRONOSYM_TEST_TLS_SERVER";

fn key() -> String {
    format!("/s/foo.pdb/{GUID}1/foo.pdb")
}

/// Returns a server for 127.0.0.1, and its certificate, which is not trusted yet.
fn secure(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> (Server, String) {
    let names = vec!["127.0.0.1".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(names).unwrap();
    let provider = rustls::crypto::ring::default_provider().into();
    let tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], signing_key.into())
        .unwrap();
    (Server::secure(tls, answer), cert.pem())
}

/// Run by a test below, in a process whose `SSL_CERT_FILE` names the server's certificate; alone it
/// does nothing.
#[test]
fn trusting_process() {
    let Ok(server) = std::env::var(SERVER) else {
        return;
    };
    let setup = Setup::new(&format!("srv*{{dir}}/down*{server}s"));
    found(&setup.acquire(&foo()));
    // The same server sends to one without TLS.
    let setup = Setup::new(&format!("srv*{{dir}}/down*{server}open"));
    let outcome = setup.acquire(&foo());
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::Refused(_), ..]),
        "{outcome:?}"
    );
}

#[test]
fn trusted_certificates() {
    let open = Server::new(|_| Reply::Ok(windows(1)));
    let elsewhere = open.url("foo.pdb");
    let (server, certificate) = secure(move |path| {
        if path == key() {
            Reply::Ok(windows(1))
        } else if path.starts_with("/open/foo.pdb/") {
            Reply::Redirect(302, elsewhere.clone())
        } else {
            Reply::Status(404)
        }
    });
    let setup = Setup::new("");
    let file = setup.write("roots.pem", certificate);
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::trusting_process", "--nocapture"])
        .env("SSL_CERT_FILE", file)
        .env_remove("SSL_CERT_DIR")
        .env(SERVER, server.url(""))
        .status()
        .unwrap();
    assert!(status.success());
    assert!(server.paths().contains(&key()));
    assert!(
        open.paths().is_empty(),
        "what began with TLS does not go on without"
    );
}

#[test]
fn unknown_certificates() {
    let (server, _) = secure(|_| Reply::Ok(windows(1)));
    let setup = Setup::new(&format!("srv*{{dir}}/down*{}", server.url("s")));
    let outcome = setup.acquire(&foo());
    assert_eq!(missing(&outcome), &NoFile::NoSymbolFile);
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::Failed(_)]),
        "{outcome:?}"
    );
    assert!(server.paths().is_empty(), "nothing was said to it");
}

#[test]
fn a_server_without_tls_for_an_https_url() {
    let server = Server::new(|_| Reply::Ok(windows(1)));
    let url = server.url("s").replace("http:", "https:");
    let outcome = Setup::new(&format!("srv*{{dir}}/down*{url}")).acquire(&foo());
    assert!(
        matches!(trials(&outcome)[..], [_, AttemptResult::Failed(_)]),
        "{outcome:?}"
    );
}

/// A server that never ends the handshake, silent or with a byte now and then, costs a bounded delay.
#[test]
fn handshakes_that_do_not_end_are_abandoned() {
    for drips in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // The head of a record of 16 KiB.
                let mut bytes = vec![0x16, 3, 3, 0x3f, 0xff];
                while drips && stream.write_all(&bytes).is_ok() {
                    bytes = vec![2];
                    thread::sleep(Duration::from_millis(20));
                }
                thread::sleep(Duration::from_secs(30));
            }
        });
        let mut setup = Setup::new(&format!("srv*{{dir}}/down*https://127.0.0.1:{port}/s"));
        setup.config.fetch.connect_timeout = Duration::from_millis(300);
        let begun = Instant::now();
        let outcome = setup.acquire(&foo());
        assert!(begun.elapsed() < Duration::from_secs(10), "{drips}");
        assert_eq!(trials(&outcome)[1], &AttemptResult::TimedOut, "{drips}");
        setup.assert_tidy();
    }
}
