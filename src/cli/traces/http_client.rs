//! The HTTP client of the OTLP exporter.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use hyper::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};

use crate::transport::{Endpoint, Setup, one_shot};

/// The library's HTTP client, on our own transport.
#[derive(Debug, Default)]
pub(super) struct OtlpClient(Setup);

impl HttpClient for OtlpClient {
    fn send_bytes<'s, 'f>(
        &'s self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let to: Endpoint = request.uri().to_string().parse()?;
            Ok(one_shot(&to, &self.0, request).await?)
        })
    }
}
