//! What was run, as JSON: all that two runs must have in common to be compared, and where it went.

use serde_json::{Value, json};

use super::{Loop, Report, seconds};

impl Report {
    /// The settings of the run. What does not apply is left out.
    pub(super) fn run(&self) -> Value {
        let mut run = match self.kind {
            Loop::Open { rate, duration, connections } => json!({
                "loop": "open", "rate": rate, "duration_s": seconds(duration), "connections": connections,
            }),
            Loop::Closed { clients, until } => {
                let mut run = json!({ "loop": "closed", "clients": clients });
                put(&mut run, "requests", until.requests.map(Value::from));
                put(&mut run, "duration_s", until.duration.map(|time| seconds(time).into()));
                run
            }
        };
        let arrivals = Some(&self.arrivals).filter(|arrivals| !arrivals.is_empty());
        put(&mut run, "arrivals", arrivals.map(|arrivals| json!(arrivals)));
        run["workload"] = json!(self.workload);
        run["workload_digest"] = json!(format!("{:016x}", self.digest));
        run["about"] = json!(self.about);
        run["limits_ms"] = json!(self.limits_ms);
        run["tenants"] = json!(self.tenants);
        run["url"] = json!(self.url);
        self.put_driver(&mut run);
        run["seed"] = json!(self.seed);
        run["warm_up_s"] = json!(self.warm_up.as_secs_f64());
        put(&mut run, "interrupted_after_s", self.stopped.map(|time| json!(time.as_secs_f64())));
        run
    }

    fn put_driver(&self, run: &mut Value) {
        let settings = &self.driver;
        run["driver"] = json!(settings.driver.as_str());
        put(run, "path", settings.path.as_ref().map(|path| json!(path)));
        put(run, "model", settings.model.as_ref().map(|model| json!(model)));
        if settings.driver.asks_for_letters() {
            run["template"] = json!(settings.template.as_str());
            run["fan_out"] = json!(settings.fan_out.as_str());
            put(run, "top", settings.top.map(Value::from));
        }
    }
}

fn put(run: &mut Value, field: &str, value: Option<Value>) {
    if let Some(value) = value {
        run[field] = value;
    }
}
