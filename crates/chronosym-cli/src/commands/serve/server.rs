//! HTTP on the loopback interface, within limits that hold for clients without the token, too.

use std::convert::Infallible;
use std::fs::File;
use std::net::TcpListener;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use chronosym_export::ReportQueries;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::api::Api;
use super::body::ResponseBody;

/// Connections at a time. Further ones wait until another one ends.
const MAX_CONNECTIONS: usize = 256;
/// All headers of a request.
const MAX_HEADER_BYTES: usize = 64 << 10;
/// The viewer requests a few thousand addresses at most.
const MAX_BODY_BYTES: usize = 16 << 20;
/// On one machine headers arrive at once.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Includes sending the profile to a viewer that reads slowly.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(600);
/// Threads that look up symbols and source, or sum samples. Further requests wait.
const WORKERS: usize = 4;
/// Pause after a failure to accept a connection, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The server's address, and the site that may use it.
pub struct Origin {
    /// Address and port.
    pub host: String,
    /// The first part of each path.
    pub token: String,
    /// The site whose pages may send requests; without one, the report is served.
    pub viewer: Option<String>,
}

pub struct Service {
    origin: Origin,
    /// The report, or the viewer's profile.
    content: Arc<File>,
    answers: Answers,
}

/// What answers requests other than those for the content.
pub enum Answers {
    /// Queries of a report that lacks samples.
    Report(Option<ReportQueries>),
    Viewer(Api),
}

/// Serves until the process is stopped.
pub fn run(listener: TcpListener, service: Service) -> Result<()> {
    listener
        .set_nonblocking(true)
        .context("cannot accept connections")?;
    // Lookups run on threads, and tokio panics where none can be started.
    let thread = std::thread::Builder::new().spawn(|| ());
    thread.context("cannot start a thread")?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(WORKERS)
        .build()
        .context("cannot start the server")?;
    runtime.block_on(accept(listener, Arc::new(service)))
}

async fn accept(listener: TcpListener, service: Arc<Service>) -> Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let slot = Arc::clone(&slots).acquire_owned().await?;
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let service = Arc::clone(&service);
        let respond = move |request| {
            let service = Arc::clone(&service);
            async move { Ok::<_, Infallible>(service.respond(request).await) }
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(MAX_HEADER_BYTES)
            // Requests that differ in how they are delimited cannot hide another one.
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service_fn(respond));
        tokio::spawn(async move {
            // A client that disconnects needs no answer.
            _ = timeout(CONNECTION_TIMEOUT, connection).await;
            drop(slot);
        });
    }
}

impl Service {
    pub fn new(origin: Origin, content: File, answers: Answers) -> Self {
        Service {
            origin,
            content: Arc::new(content),
            answers,
        }
    }

    async fn respond(self: &Arc<Self>, request: Request<Incoming>) -> Response<ResponseBody> {
        let origin = request.headers().get(header::ORIGIN);
        let viewer = self.origin.viewer.as_ref().filter(|_| origin.is_some());
        let is_allowed = self.is_allowed(request.headers());
        let answer = match is_allowed {
            true => self.answer(request).await,
            false => Err(StatusCode::FORBIDDEN),
        };
        let mut response = Response::new(ResponseBody::Text(Bytes::new()));
        match answer {
            Ok(body) => {
                let kind = match (&self.answers, &body) {
                    (Answers::Viewer(_), _) => "application/json",
                    (Answers::Report(_), ResponseBody::File { .. }) => "text/html; charset=utf-8",
                    (Answers::Report(_), ResponseBody::Text(_)) => "text/plain",
                };
                *response.body_mut() = body;
                add(&mut response, header::CONTENT_TYPE, kind);
            }
            Err(status) => *response.status_mut() = status,
        }
        add(&mut response, header::CACHE_CONTROL, "no-store");
        add(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        add(&mut response, header::X_FRAME_OPTIONS, "DENY");
        add(&mut response, header::REFERRER_POLICY, "no-referrer");
        add(&mut response, header::VARY, "Origin");
        if is_allowed && let Some(viewer) = viewer {
            add(&mut response, header::ACCESS_CONTROL_ALLOW_ORIGIN, viewer);
            let methods = header::ACCESS_CONTROL_ALLOW_METHODS;
            add(&mut response, methods, "GET, POST");
            let headers = header::ACCESS_CONTROL_ALLOW_HEADERS;
            add(&mut response, headers, "content-type");
            let private = HeaderName::from_static("access-control-allow-private-network");
            add(&mut response, private, "true");
        }
        response
    }

    /// Another site's page may send requests under a name that resolves to this address, but not
    /// with this host.
    fn is_allowed(&self, headers: &HeaderMap) -> bool {
        let is = |name: HeaderName, expected: &str| {
            let mut values = headers.get_all(name).iter();
            values.all(|value| value.as_bytes() == expected.as_bytes())
        };
        let is_viewer = match &self.origin.viewer {
            Some(viewer) => is(header::ORIGIN, viewer),
            None => !headers.contains_key(header::ORIGIN),
        };
        headers.contains_key(header::HOST) && is(header::HOST, &self.origin.host) && is_viewer
    }

    async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<ResponseBody, StatusCode> {
        let path = self.strip_token(request.uri().path());
        let path = path.ok_or(StatusCode::NOT_FOUND)?.to_owned();
        let file = match self.answers {
            Answers::Viewer(_) => "/profile.json",
            Answers::Report(_) => "/",
        };
        let content = || ResponseBody::file(Arc::clone(&self.content));
        match (request.method(), path.as_str()) {
            (&Method::GET, path) if path == file => {
                content().map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
            }
            (_, path) if path == file => Err(match *request.method() {
                Method::OPTIONS => StatusCode::NO_CONTENT,
                _ => StatusCode::METHOD_NOT_ALLOWED,
            }),
            (method, "/query") if matches!(self.answers, Answers::Report(Some(_))) => {
                if method != Method::GET {
                    return Err(StatusCode::METHOD_NOT_ALLOWED);
                }
                let times = times(request.uri().query()).ok_or(StatusCode::BAD_REQUEST)?;
                self.work(move |service| {
                    let mut answer = Vec::new();
                    if let Answers::Report(Some(queries)) = &service.answers {
                        // Nothing fails to be written to memory.
                        _ = queries.write(times, &mut answer);
                    }
                    answer.into()
                })
                .await
            }
            _ if matches!(self.answers, Answers::Report(_)) => Err(StatusCode::NOT_FOUND),
            (&Method::POST, "/symbolicate/v5" | "/source/v1" | "/asm/v1") => {
                let question = read_body(request).await?;
                self.work(move |service| match &service.answers {
                    Answers::Viewer(api) => api.answer(&path, &question).into(),
                    Answers::Report(_) => Bytes::new(),
                })
                .await
            }
            (method, "/symbolicate/v5" | "/source/v1" | "/asm/v1") => Err(match *method {
                Method::OPTIONS => StatusCode::NO_CONTENT,
                _ => StatusCode::METHOD_NOT_ALLOWED,
            }),
            _ => Err(StatusCode::NOT_FOUND),
        }
    }

    /// Makes an answer on one of the threads.
    async fn work(
        self: &Arc<Self>,
        answer: impl FnOnce(&Self) -> Bytes + Send + 'static,
    ) -> Result<ResponseBody, StatusCode> {
        let service = Arc::clone(self);
        let answer = tokio::task::spawn_blocking(move || answer(&service)).await;
        let answer = answer.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        Ok(ResponseBody::Text(answer))
    }

    /// Returns the part of a path after the token, if that is right.
    fn strip_token<'p>(&self, path: &'p str) -> Option<&'p str> {
        let token = &self.origin.token;
        let (start, rest) = path.strip_prefix('/')?.split_at_checked(token.len())?;
        // The time does not depend on where a wrong token differs.
        let bytes = start.bytes().zip(token.bytes());
        let difference = bytes.fold(0, |all, (a, b)| all | (a ^ b));
        (difference == 0).then_some(rest)
    }
}

/// Returns the times of `from=NS&to=NS`, each optional.
fn times(query: Option<&str>) -> Option<Range<u64>> {
    let mut times = 0..u64::MAX;
    for part in query.unwrap_or_default().split('&') {
        match part.split_once('=') {
            Some(("from", ns)) => times.start = ns.parse().ok()?,
            Some(("to", ns)) => times.end = ns.parse().ok()?,
            _ if part.is_empty() => {}
            _ => return None,
        }
    }
    Some(times)
}

async fn read_body(request: Request<Incoming>) -> Result<Bytes, StatusCode> {
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    match timeout(BODY_TIMEOUT, body).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

fn add(response: &mut Response<ResponseBody>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
