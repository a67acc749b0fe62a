//! CrowdSec itself, as Debian has it: its local API with a database of its own, in a folder of the test.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use super::*;

/// The password of the machine `pusher`.
pub(in crate::control) const PASSWORD: &str = "the-password-of-this-machine";

/// The service, until the value is dropped.
pub(in crate::control) struct CrowdSec {
    programs: PathBuf,
    folder: tempfile::TempDir,
    pub(in crate::control) port: u16,
    server: Option<Child>,
}

impl Drop for CrowdSec {
    fn drop(&mut self) {
        self.stop();
    }
}

impl CrowdSec {
    /// `None` where the programs are not on this machine.
    pub(in crate::control) fn find() -> Option<CrowdSec> {
        let given = std::env::var_os("PALISADE_CROWDSEC").map(PathBuf::from);
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.cache/crowdsec");
        let programs = given.unwrap_or_else(beside).join("bin");
        if !programs.join("crowdsec").exists() {
            return None;
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let made = CrowdSec { programs, folder: folder(), port, server: None };
        made.configure();
        Some(made)
    }

    fn configure(&self) {
        let at = self.folder.path();
        for name in ["conf", "data", "hub", "notifications", "plugins"] {
            std::fs::create_dir(at.join(name)).unwrap();
        }
        let base = at.display();
        let config = format!(
            "common: {{daemonize: false, log_media: stdout, log_level: info, working_dir: {base}}}\n\
             config_paths: {{config_dir: {base}/conf, data_dir: {base}/data, simulation_path: {base}/conf/simulation.yaml, \
             hub_dir: {base}/hub, index_path: {base}/hub/.index.json, notification_dir: {base}/notifications, \
             plugin_dir: {base}/plugins}}\n\
             crowdsec_service: {{enable: false, acquisition_path: {base}/conf/acquis.yaml}}\n\
             cscli: {{output: json}}\n\
             db_config: {{type: sqlite, db_path: {base}/data/crowdsec.db, log_level: info}}\n\
             api:\n  client: {{credentials_path: {base}/conf/credentials.yaml}}\n  \
             server: {{enable: true, log_level: info, listen_uri: 127.0.0.1:{}, profiles_path: {base}/conf/profiles.yaml, \
             console_path: {base}/conf/console.yaml}}\nprometheus: {{enabled: false}}\n",
            self.port
        );
        let profile = "name: default\nfilters: ['Alert.Remediation == true']\ndecisions: [{type: ban, duration: 4h}]\n";
        for (name, text) in [
            ("config.yaml", config.as_str()),
            ("conf/simulation.yaml", "simulation: off\n"),
            ("conf/credentials.yaml", ""),
            ("conf/console.yaml", ""),
            ("conf/acquis.yaml", ""),
            ("conf/profiles.yaml", profile),
            ("hub/.index.json", "{}"),
        ] {
            std::fs::write(at.join(name), text).unwrap();
        }
        let credentials = at.join("conf/credentials.yaml");
        self.cscli(&["machines", "add", "gateway", "--password", "secret", "-f", credentials.to_str().unwrap()]);
        self.cscli(&["machines", "add", "pusher", "--password", PASSWORD, "-f", at.join("pusher").to_str().unwrap()]);
        self.cscli(&["bouncers", "add", "gateway", "-k", KEY]);
    }

    /// What a command says.
    pub(in crate::control) fn cscli(&self, arguments: &[&str]) -> String {
        let config = self.folder.path().join("config.yaml");
        let mut command = Command::new(self.programs.join("cscli"));
        let ended = command.arg("-c").arg(config).args(arguments).stdin(Stdio::null()).output().unwrap();
        assert!(ended.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    }

    pub(in crate::control) async fn start(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(self.programs.join("crowdsec"));
        let command = command.arg("-c").arg(self.folder.path().join("config.yaml")).arg("-no-cs").stdin(Stdio::null());
        self.server = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{}", std::fs::read_to_string(self.folder.path().join("log")).unwrap());
    }

    /// Ends it at once.
    pub(in crate::control) fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            server.kill().unwrap();
            server.wait().unwrap();
        }
    }

    /// Decides something for an hour.
    pub(in crate::control) fn decides(&self, what: &[&str]) {
        self.cscli(&[&["decisions", "add", "-d", "1h"], what].concat());
    }
}

#[tokio::test]
async fn the_real_service_is_followed() {
    let Some(mut crowdsec) = CrowdSec::find() else {
        println!("LEFT OUT: crowdsec is not on this machine: run `make crowdsec`");
        eprintln!("LEFT OUT: crowdsec is not on this machine: run `make crowdsec`");
        return;
    };
    crowdsec.start().await;
    crowdsec.decides(&["-i", "203.0.113.9"]);
    crowdsec.decides(&["-r", "198.51.100.77/24", "-t", "captcha"]);
    crowdsec.decides(&["--scope", "Country", "--value", "CN"]);
    crowdsec.decides(&["--scope", "AS", "--value", "64496"]);
    let scopes = serde_json::from_value(serde_json::json!(["ip", "range", "country", "as"])).unwrap();
    let own = SvcBouncer {
        lapi_url: format!("http://127.0.0.1:{}/", crowdsec.port),
        api_key: KEY.into(),
        allow_private: true,
        poll_interval_seconds: 1,
        scopes,
        ..SvcBouncer::default()
    };
    let folder = folder();
    let world = World::start(folder.path(), &[("a", own.clone())]);
    world.until("the list", |world| world.bans("203.0.113.9")).await;
    assert_eq!(world.finds("198.51.100.1"), Some((vec!["a".into()], false)), "a captcha");
    let key = bouncer_key("a");
    assert_eq!((world.named("country:cn"), world.named("as:64496")), (Some(key.clone()), Some(key)));
    // Changes.
    crowdsec.decides(&["-i", "203.0.113.10"]);
    crowdsec.decides(&["-i", "2001:db8::7"]);
    world.until("more", |world| world.bans("203.0.113.10") && world.bans("2001:db8::7")).await;
    crowdsec.cscli(&["decisions", "delete", "-i", "203.0.113.9"]);
    world.until("less", |world| !world.bans("203.0.113.9")).await;
    // Deleted and decided again within the time for which deletions are repeated.
    crowdsec.decides(&["-i", "203.0.113.9"]);
    world.until("again", |world| world.bans("203.0.113.9")).await;
    crowdsec.cscli(&["decisions", "delete", "-i", "203.0.113.9"]);
    crowdsec.decides(&["-i", "203.0.113.9"]);
    let shown = world.runtime.bouncer("a").last_sync;
    world.until("two more calls", |world| world.runtime.bouncer("a").last_sync > shown.map(|at| at + 2_500)).await;
    assert!(world.bans("203.0.113.9"));
    // Two decisions on one address: the deletion of the longest is not told, and that of all is.
    crowdsec.cscli(&["decisions", "add", "-d", "2h", "-i", "203.0.113.10"]);
    let shown = world.runtime.bouncer("a").last_sync;
    world.until("another call", |world| world.runtime.bouncer("a").last_sync > shown.map(|at| at + 1_500)).await;
    assert!(world.bans("203.0.113.10"));
    crowdsec.cscli(&["decisions", "delete", "-i", "203.0.113.10"]);
    world.until("all of them are deleted", |world| !world.bans("203.0.113.10")).await;
    // A decision that ends, by its clock and ours.
    crowdsec.cscli(&["decisions", "add", "-d", "3s", "-i", "203.0.113.11"]);
    world.until("a short one", |world| world.bans("203.0.113.11")).await;
    world.until("its end", |world| !world.bans("203.0.113.11")).await;
    // Killed: what is in force stays. Started again: what was decided meanwhile counts.
    crowdsec.stop();
    world.until("the failure", |world| world.runtime.bouncer("a").last_error.is_some()).await;
    assert!(world.bans("203.0.113.9"));
    crowdsec.start().await;
    crowdsec.decides(&["-i", "203.0.113.12"]);
    world.until("it works again", |world| world.bans("203.0.113.12")).await;
    assert!(world.told().contains(&"bouncer `a` works".to_owned()));
    // A wrong key.
    world.set("a", Some(SvcBouncer { api_key: "wrong".into(), ..own }));
    world.until("the refusal", |world| world.runtime.bouncer("a").last_error.is_some()).await;
    assert_eq!(world.runtime.bouncer("a").last_error.as_deref(), Some("the service refuses the key (403)"));
    assert!(world.bans("203.0.113.9"));
}
