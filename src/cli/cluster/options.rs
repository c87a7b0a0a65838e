//! `--cluster` and its options.

use std::path::{Path, PathBuf};

use async_nats::ServerAddr;
use clap::Args;

use crate::cli::remote::read_secrets;
use auth::address::{Network, Reach};
use cluster::{GatewaySettings, HostSettings, NatsSettings, Signer, read_server};
use jsonrpc::Limits;
use transport::{Endpoint, Setup};

/// Options of relays that work together on many machines.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Many machines")]
pub(in crate::cli) struct ClusterArgs {
    /// The NATS servers where hosts and gateways meet: nats://HOST:PORT or tls://HOST:PORT,
    /// several with commas
    #[arg(long, id = "cluster.servers", value_name = "URL")]
    #[arg(value_delimiter = ',', value_parser = read_server)]
    pub(in crate::cli) cluster: Vec<ServerAddr>,
    /// A file with the credentials for NATS: a .creds file, or the seed of an nkey
    #[arg(long, id = "cluster.credentials", value_name = "FILE")]
    cluster_credentials: Option<PathBuf>,
    /// Authorities that the NATS servers' certificates may have besides the system's
    #[arg(long, id = "cluster.ca", value_name = "FILE")]
    cluster_ca: Option<PathBuf>,
    /// Of a host: the public keys of the gateways that it trusts, one a line
    #[arg(long, id = "cluster.trust", value_name = "FILE")]
    pub(in crate::cli) cluster_trust: Option<PathBuf>,
    /// Of a host: its name, which its NATS account may be limited to [default: the machine's name]
    #[arg(long, id = "cluster.name", value_name = "NAME")]
    cluster_name: Option<String>,
    /// Of a host: a label, which gateways can select
    #[arg(long, id = "cluster.labels", value_name = "NAME=VALUE", value_parser = read_label)]
    cluster_label: Vec<(String, String)>,
    /// Of a host: how many conversations it takes [default: the limit `connections`]
    #[arg(long, id = "cluster.capacity", value_name = "COUNT")]
    cluster_capacity: Option<usize>,
    /// Of a host: where gateways reach one of its listeners, so that messages do not go through
    /// NATS: wss://HOST:PORT, within their --cluster-direct
    #[arg(long, id = "cluster.address", value_name = "ENDPOINT")]
    cluster_address: Option<Endpoint>,
    /// Of a gateway: the file with the key that signs what it tells hosts; `acp-relay cluster key`
    /// makes one
    #[arg(long, id = "cluster.key", value_name = "FILE")]
    pub(in crate::cli) cluster_key: Option<PathBuf>,
    /// Of a gateway: a label that a host needs to be used
    #[arg(long, id = "cluster.select", value_name = "NAME=VALUE", value_parser = read_label)]
    cluster_select: Vec<(String, String)>,
    /// Of a gateway: addresses of hosts that it connects to directly, such as 10.1.0.0/16; without
    /// it, everything goes through NATS
    #[arg(long, id = "cluster.direct", value_name = "CIDR")]
    cluster_direct: Vec<Network>,
}

impl ClusterArgs {
    /// Where the servers are, for a gateway or a host of this name.
    ///
    /// # Errors
    /// There are none, or the credentials cannot be read.
    pub(in crate::cli) fn nats(&self, name: &str) -> Result<NatsSettings, String> {
        if self.cluster.is_empty() {
            return Err("hosts and gateways need NATS servers: --cluster nats://HOST".to_owned());
        }
        let credentials = self.cluster_credentials.as_ref();
        let credentials = credentials.map(|path| read_secrets("--cluster-credentials FILE", path));
        Ok(NatsSettings {
            servers: self.cluster.clone(),
            credentials: credentials.transpose()?,
            ca: self.cluster_ca.clone(),
            name: name.to_owned(),
        })
    }

    /// What the host is, with these limits.
    ///
    /// # Errors
    /// An option is missing, or has a value that cannot be used.
    pub(in crate::cli) fn host(&self, limits: &Limits) -> Result<HostSettings, String> {
        let trust = self.cluster_trust.clone();
        let trust = trust.ok_or(
            "a host needs the public keys of its gateways: --cluster-trust FILE, a line for each; \
             `acp-relay cluster key` shows them",
        )?;
        let address = self.cluster_address.clone();
        let is_other = |at: &&Endpoint| !matches!(at, Endpoint::Http(_));
        if let Some(other) = address.as_ref().filter(is_other) {
            return Err(format!(
                "--cluster-address {other}: gateways connect to ws:// or wss://"
            ));
        }
        let connections = limits.connections;
        let capacity = self.cluster_capacity.unwrap_or(connections);
        if capacity > connections {
            return Err(format!(
                "--cluster-capacity {capacity} is more than the limit `connections`, {connections}"
            ));
        }
        let machine = rustix::system::uname();
        let name = || machine.nodename().to_string_lossy().into_owned();
        Ok(HostSettings {
            name: self.cluster_name.clone().unwrap_or_else(name),
            labels: self.cluster_label.iter().cloned().collect(),
            capacity,
            address,
            trust,
        })
    }

    /// What the gateway is, which connects to hosts directly with the settings `direct`.
    ///
    /// # Errors
    /// An option is missing, or the key cannot be used.
    pub(in crate::cli) fn gateway(&self, direct: Setup) -> Result<GatewaySettings, String> {
        let key = self.cluster_key.as_ref().ok_or(
            "a gateway needs a key: `acp-relay cluster key FILE` makes one, for --cluster-key FILE",
        )?;
        Ok(GatewaySettings {
            signer: read_key(key)?,
            select: self.cluster_select.iter().cloned().collect(),
            direct: Setup {
                reach: Reach::Within(self.cluster_direct.as_slice().into()),
                ..direct
            },
        })
    }
}

/// The key of a gateway, in a file that only its owner can read.
pub(super) fn read_key(path: &Path) -> Result<Signer, String> {
    let signer = Signer::from_seed(&read_secrets("--cluster-key", path)?);
    signer.map_err(|fault| format!("--cluster-key: {}: {fault}", path.display()))
}

fn read_label(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
