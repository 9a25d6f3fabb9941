//! An Indexed Job with a headless Service, or a JobSet, which has its own.
//!
//! Every pod runs the same command. The job's index is its rank; the pod with index 0 coordinates,
//! and the service gives it a name before it is ready. No pod is made a second time: a process that
//! comes back is another one, and a run that lost an agent is judged as it is.

use serde_json::{Value, json};

use super::{Check, Pods, Scenario, SecretKey, Unusable, yaml};
use crate::place::{COORDINATOR, SIZE};
use crate::token;

/// The place where the scenario of a ConfigMap is mounted.
const SCENARIO: &str = "/etc/runner";
/// Its file there.
const SCENARIO_FILE: &str = "scenario.toml";
/// The place where results are written.
const RESULTS: &str = "/results";
/// The name of a JobSet's only job.
const JOB: &str = "load";
/// The time that a pod may take to end a run that is stopped, in seconds: replies under way are
/// waited for.
const GRACE: u32 = 120;

/// The manifest of a fleet of pods, as YAML.
///
/// # Errors
/// With everything that is wrong with the description.
pub fn kubernetes(pods: &Pods) -> Result<String, Unusable> {
    check(pods)?;
    Ok(yaml::documents(&documents(pods)))
}

fn check(pods: &Pods) -> Result<(), Unusable> {
    let mut check = Check::default();
    check.name("the name", &pods.name);
    if let Some(namespace) = &pods.namespace {
        check.name("the namespace", namespace);
    }
    check.word("the image", &pods.image, "an image such as `registry.example/runner:0.1.0`");
    check.size(pods.size, pods.port);
    match &pods.scenario {
        Scenario::Path(path) => check.text("the scenario's path", path),
        Scenario::ConfigMap { name, key } => {
            check.object("the scenario's ConfigMap", name);
            check.key("the scenario's key", key);
        }
    }
    for argument in &pods.arguments {
        check.text("an argument", argument);
    }
    check.quantity("the number of cores", &pods.cpu, "8");
    check.quantity("the memory", &pods.memory, "16Gi");
    check.secret("the token", &pods.token);
    for (variable, secret) in &pods.variables {
        check.variable(variable);
        check.secret(variable, secret);
    }
    if let Some(claim) = &pods.results {
        check.object("the claim for results", claim);
    }
    check.end()
}

/// The objects, as Kubernetes' API has them.
pub(super) fn documents(pods: &Pods) -> Vec<Value> {
    let labels =
        json!({"app.kubernetes.io/name": "runner", "app.kubernetes.io/instance": pods.name});
    let mut metadata = json!({"name": pods.name});
    if let Some(namespace) = &pods.namespace {
        metadata["namespace"] = json!(namespace);
    }
    metadata["labels"] = labels.clone();
    if pods.jobset {
        let host = format!("{}-{JOB}-0-0.{}", pods.name, pods.name);
        return vec![json!({
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": metadata,
            "spec": {
                "network": {
                    "enableDNSHostnames": true,
                    "subdomain": pods.name,
                    "publishNotReadyAddresses": true,
                },
                "failurePolicy": {"maxRestarts": 0},
                "replicatedJobs": [{
                    "name": JOB,
                    "replicas": 1,
                    "template": {"spec": job(pods, &labels, &host)},
                }],
            },
        })];
    }
    let host = format!("{}-0.{}", pods.name, pods.name);
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": {"batch.kubernetes.io/job-name": pods.name},
            "ports": [{"name": "fleet", "port": pods.port}],
        },
    });
    let mut spec = job(pods, &labels, &host);
    spec["template"]["spec"]["subdomain"] = json!(pods.name);
    let job = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": spec,
    });
    vec![service, job]
}

/// The job, whose coordinator has this host name.
fn job(pods: &Pods, labels: &Value, host: &str) -> Value {
    let path = match &pods.scenario {
        Scenario::Path(path) => path.clone(),
        Scenario::ConfigMap { .. } => format!("{SCENARIO}/{SCENARIO_FILE}"),
    };
    let mut command = vec!["runner".to_owned(), "fleet".to_owned(), path];
    command.extend(["--output-dir".to_owned(), RESULTS.to_owned()]);
    command.extend(pods.arguments.iter().cloned());
    // Kubernetes puts variables in for `$(NAME)`, and a dollar for two.
    let command: Vec<String> = (command.iter()).map(|word| word.replace('$', "$$")).collect();
    let mut variables = vec![
        json!({"name": SIZE, "value": pods.size.to_string()}),
        json!({"name": COORDINATOR, "value": format!("{host}:{}", pods.port)}),
        variable(token::VARIABLE, &pods.token),
    ];
    variables.extend((pods.variables.iter()).map(|(name, secret)| variable(name, secret)));
    let mut mounts = vec![json!({"name": "results", "mountPath": RESULTS})];
    let mut volumes = vec![match &pods.results {
        Some(claim) => json!({"name": "results", "persistentVolumeClaim": {"claimName": claim}}),
        None => json!({"name": "results", "emptyDir": {}}),
    }];
    if let Scenario::ConfigMap { name, key } = &pods.scenario {
        mounts.push(json!({"name": "scenario", "mountPath": SCENARIO, "readOnly": true}));
        let items = json!([{"key": key, "path": SCENARIO_FILE}]);
        volumes.push(json!({"name": "scenario", "configMap": {"name": name, "items": items}}));
    }
    // As much as is asked for and no more, so that pods do not take cores from each other.
    let amount = json!({"cpu": pods.cpu, "memory": pods.memory});
    json!({
        "completionMode": "Indexed",
        "completions": pods.size,
        "parallelism": pods.size,
        "backoffLimit": 0,
        "template": {
            "metadata": {"labels": labels},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": GRACE,
                "automountServiceAccountToken": false,
                // Two on one node share its network card.
                "topologySpreadConstraints": [{
                    "maxSkew": 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": labels},
                }],
                "containers": [{
                    "name": "runner",
                    "image": pods.image,
                    "command": command,
                    "env": variables,
                    "ports": [{"name": "fleet", "containerPort": pods.port}],
                    "resources": {"requests": amount, "limits": amount},
                    "securityContext": {"allowPrivilegeEscalation": false},
                    "volumeMounts": mounts,
                }],
                "volumes": volumes,
            },
        },
    })
}

/// A variable with a secret's value, by reference.
fn variable(name: &str, secret: &SecretKey) -> Value {
    let reference = json!({"name": secret.name, "key": secret.key});
    json!({"name": name, "valueFrom": {"secretKeyRef": reference}})
}
