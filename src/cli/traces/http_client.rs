//! The HTTP client of the OTLP exporter.

use bytes::Bytes;
use hyper::{Request, Response};
use opentelemetry_http::HttpError;

use transport::{BoxFuture, Endpoint, HttpClient, Setup};

/// Longest response that is read, in bytes.
const MAX_BODY: usize = 1 << 20;

/// The library's HTTP client, on our own.
#[derive(Debug, Default)]
pub(super) struct OtlpClient(Setup);

impl opentelemetry_http::HttpClient for OtlpClient {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> BoxFuture<'f, Result<Response<Bytes>, HttpError>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let to: Endpoint = request.uri().to_string().parse()?;
            // A client per request: the exporter's runtime runs only while it sends.
            let client = HttpClient::new(&to, &self.0)?;
            Ok(client.fetch(request, MAX_BODY).await?)
        })
    }
}
