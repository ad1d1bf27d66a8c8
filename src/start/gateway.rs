//! Wiring of a gateway: listener, backends asked for the first time, and the order in which it stops.

use std::future::Future;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;

use super::certificates::Certificates;
use super::{LISTENING, METRICS_UPKEEP, StartError, recorder_with, secret};
use crate::config::GatewayConfig;
use crate::gateway::{Gateway, Render, operators, router};
use crate::http::serve::{Http2Config, ServeConfig};

/// Runs a gateway until `shutdown` is done, then finishes what is under way.
///
/// # Errors
/// [`StartError`]; nothing is left running then.
pub async fn serve(
    config: GatewayConfig,
    shutdown: impl Future<Output = ()>,
) -> Result<(), StartError> {
    let metrics = recorder_with(crate::telemetry::gateway_buckets())?;
    crate::telemetry::describe_gateway();
    let secret = secret::load(config.state_key_secret.as_deref())?;
    let certificates = Certificates::load(config.wire.tls.as_ref()).await?;
    let tls = certificates.map(Certificates::watched).transpose()?;
    let (listener, local) = listen(&config.listen).await?;
    let for_operators = match &config.metrics_listen {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    let gateway = Gateway::new(config.clone(), config.dialect.into(), secret);
    gateway.probe().await;
    gateway.watch();
    tokio::spawn(upkeep(metrics.clone()));
    let render: Render = Arc::new(move || metrics.render());
    if let Some((listener, local)) = for_operators {
        let router = operators(Arc::clone(&gateway), Arc::clone(&render));
        // It lasts as long as the process: what a drain does is seen there to the end.
        let serving = crate::http::serve::serve(
            listener,
            router,
            ServeConfig::default(),
            None,
            std::future::pending(),
        );
        tokio::spawn(serving);
        tracing::info!("metrics are at http://{local}/metrics");
    }
    if config.state_key_secret.is_none() {
        tracing::info!(
            "keys of states end with this process: with --state-key-secret a restart, or another \
             gateway, sends states where they are"
        );
    }
    let own = Some(render).filter(|_| config.metrics_listen.is_none());
    let router = router(Arc::clone(&gateway), own);
    let scheme = if tls.is_some() { "https" } else { "http" };
    tracing::info!(target: LISTENING, "listening on {scheme}://{local}");
    let stop = async {
        shutdown.await;
        tracing::info!("stopping: finishing what is under way");
        gateway.begin_drain();
        tokio::time::sleep(config.drain_delay).await;
    };
    let cut = crate::http::serve::serve(listener, router, limits(&config), tls, stop).await;
    if cut > 0 {
        tracing::warn!("{cut} connections were cut, their requests had not ended in time");
    }
    tracing::info!("stopped");
    Ok(())
}

async fn listen(address: &str) -> Result<(TcpListener, std::net::SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address: address.to_owned(), source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

fn limits(config: &GatewayConfig) -> ServeConfig {
    let (all, wire) = (config.connections_max, &config.wire);
    crate::telemetry::connections_max(all as usize);
    ServeConfig {
        connections_max: all as usize,
        connections_per_address: wire.per_address(all) as usize,
        grace: config.drain_timeout,
        http2: Http2Config { streams_max: wire.http2_streams_max, ..Http2Config::default() },
        ..ServeConfig::default()
    }
}

/// Keeps the histograms from growing while nobody scrapes.
async fn upkeep(metrics: PrometheusHandle) {
    let mut tick = tokio::time::interval(METRICS_UPKEEP);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
    }
}
