//! Goal: what decisions can rely on. Method: the four actors over an engine in virtual time.

#[cfg(test)]
#[path = "../support/fake.rs"]
mod fake;

#[cfg(test)]
mod accounting;
#[cfg(test)]
mod ending;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod forecasting;
#[cfg(test)]
mod keeping;
#[cfg(test)]
mod limiting;
#[cfg(test)]
mod observing;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod prewarm_ending;
#[cfg(test)]
mod prewarming;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod starving;
#[cfg(test)]
mod support;
