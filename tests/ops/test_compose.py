"""The Docker Compose files, as far as they can be checked without an engine."""

import http.server
import inspect
import os
import re
import shutil
import socketserver
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.stack import connect, fuseki, kafka, weaviate
from ops.stack.fetch import pom_text
from ops.stack.server import Site
from pipeline.settings import SECRET, Settings

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "compose"
OVERLAYS = ("dev", "prod")
OURS = ("api", "topics", "worker")


def resolved(overlay: str) -> dict[str, Any]:
    """What `docker-compose config` makes of the files, without anything of this machine's environment."""
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("no docker-compose here; next: apt-get install --no-install-recommends docker-compose")
    done = subprocess.run(
        [program, "-f", "compose.yaml", "-f", f"compose.{overlay}.yaml", "config"],
        cwd=COMPOSE,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    return found


@pytest.fixture(scope="module", params=OVERLAYS)
def stack(request: pytest.FixtureRequest) -> dict[str, Any]:
    return resolved(request.param)


def services(stack: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = stack["services"]
    return found


def environment(stack: dict[str, Any], name: str) -> dict[str, str]:
    return {key: str(value) for key, value in services(stack)[name].get("environment", {}).items()}


# ---------------------------------------------------------------- every service


def test_images_are_pinned(stack: dict[str, Any]) -> None:
    tags = {name: service["image"].rpartition(":")[2] for name, service in services(stack).items()}
    loose = {name: tag for name, tag in tags.items() if name not in OURS and not re.search(r"\d+\.\d+", tag)}
    assert loose == {}
    for file in (COMPOSE / "Dockerfile", COMPOSE / "jvm" / "Dockerfile"):
        bases = re.findall(r"^FROM (\S+)", file.read_text(), re.MULTILINE)
        assert bases and all(re.search(r":\d+\.\d+\.\d+", base) for base in bases), file


def test_each_service_is_limited_watched_and_started_again(stack: dict[str, Any]) -> None:
    for name, service in services(stack).items():
        assert service.get("mem_limit") and service.get("cpus"), name
        assert service["healthcheck"].get("test") or name == "topics", name
        assert service["restart"] == ("on-failure" if name == "topics" else "unless-stopped"), name


def test_ports_are_published_on_the_loopback_interface_only(stack: dict[str, Any]) -> None:
    published = {name: service.get("ports", []) for name, service in services(stack).items()}
    assert published["proxy"] and published["grafana"]
    assert [p for ports in published.values() for p in ports if not str(p).startswith("127.0.0.1:")] == []


def test_what_is_started_waits_for_what_it_needs(stack: dict[str, Any]) -> None:
    stores = {"kafka", "postgres", "weaviate", "fuseki"}
    for name in ("worker", "api"):
        needs = services(stack)[name]["depends_on"]
        assert {one for one, how in needs.items() if how["condition"] == "service_healthy"} >= stores
        assert needs["topics"]["condition"] == "service_completed_successfully"


def test_data_lie_in_volumes(stack: dict[str, Any]) -> None:
    for name in ("kafka", "postgres", "weaviate", "fuseki", "prometheus", "grafana"):
        mounts = [str(mount).split(":")[0] for mount in services(stack)[name]["volumes"]]
        assert name in mounts and name in stack["volumes"], name


def test_mounted_files_exist(stack: dict[str, Any]) -> None:
    sources = {str(m).split(":")[0] for service in services(stack).values() for m in service.get("volumes", [])}
    paths = [Path(source) for source in sources if source.startswith("/") and source != "/"]
    assert paths and [path for path in paths if not path.exists()] == []


def test_our_containers_may_do_little(stack: dict[str, Any]) -> None:
    for name in (*OURS, "fuseki", "connect", "proxy"):
        service = services(stack)[name]
        assert service["read_only"] and service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_only_the_proxy_reaches_the_api(stack: dict[str, Any]) -> None:
    api = services(stack)["api"]
    assert api["network_mode"] == "service:proxy" and environment(stack, "api")["SHINSEN_HOST"] == "127.0.0.1"


def test_in_prod_the_stores_have_no_way_out() -> None:
    stack = resolved("prod")
    assert stack["networks"]["stores"]["internal"] is True
    for name in ("kafka", "postgres", "weaviate", "fuseki"):
        assert list(services(stack)[name]["networks"]) == ["stores"] and "ports" not in services(stack)[name]
    assert environment(stack, "api")["SHINSEN_ANONYMOUS_GROUPS"] == "nobody"
    proxy = (COMPOSE / "proxy" / "prod.conf").read_text()
    assert "auth_basic_user_file /run/secrets/htpasswd;" in proxy
    assert "proxy_set_header X-Shinsen-Groups $shinsen_groups;" in proxy


# ---------------------------------------------------------------- settings and secrets


def test_each_setting_that_is_passed_exists_and_is_valid(
    stack: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {f"SHINSEN_{name.upper()}" for name in Settings.model_fields}
    known |= {f"SHINSEN_{name.upper()}_FILE" for name in SECRET}
    for name in OURS:
        passed = environment(stack, name)
        assert passed.keys() <= known, name
        for key, value in passed.items():
            if not key.endswith("_FILE"):
                monkeypatch.setenv(key, value)
        monkeypatch.setenv("SHINSEN_POSTGRES", "postgresql://shinsen@postgres/shinsen")
        settings = Settings()
        assert settings.profile == "stack" and settings.kafka and settings.weaviate and settings.sparql


def test_variables_of_the_compose_files_that_look_like_settings_are_settings() -> None:
    of_compose = {"SHINSEN_CONFIG", "SHINSEN_IMAGE_TAG"}
    for file in COMPOSE.glob("compose*.yaml"):
        used = set(re.findall(r"\$\{(SHINSEN_\w+)", file.read_text())) - of_compose
        assert used <= {f"SHINSEN_{name.upper()}" for name in Settings.model_fields}, file.name


def test_no_secret_stands_in_the_environment(stack: dict[str, Any]) -> None:
    for name in services(stack):
        shown = environment(stack, name).items()
        assert [k for k, v in shown if re.search("PASSWORD|SECRET_|_KEY$", k) and not k.endswith("FILE")] == [], name
        assert "SHINSEN_POSTGRES" not in environment(stack, name)


def test_the_script_makes_every_secret_once(tmp_path: Path) -> None:
    shutil.copy(COMPOSE / "secrets.sh", tmp_path)
    wanted = {Path(s["file"]).name for overlay in OVERLAYS for s in resolved(overlay)["secrets"].values()}

    def made() -> dict[str, str]:
        subprocess.run(["sh", str(tmp_path / "secrets.sh")], check=True, capture_output=True, timeout=60)
        return {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}

    first = made()
    assert set(first) == wanted
    assert made() == first
    assert first["postgres_password"].strip() in first["postgres_url"]
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert "secrets/" in (COMPOSE / ".gitignore").read_text().split()


# ---------------------------------------------------------------- the same as ops/stack, which the tests run


def test_versions_are_those_that_the_tests_run() -> None:
    stack = resolved("prod")
    images = {name: service["image"] for name, service in services(stack).items()}
    assert images["kafka"].endswith(f":{kafka.VERSION}")
    assert images["weaviate"].endswith(f":{weaviate.VERSION}")
    assert images["fuseki"].endswith(f":{fuseki.VERSION}")
    assert images["connect"].endswith(f":{connect.VERSION}-{connect.DEBEZIUM.removesuffix('.Final')}")
    for module, name in ((fuseki, "fuseki"), (connect, "connect")):
        assert (COMPOSE / "jvm" / f"{name}.pom.xml").read_text() == pom_text(module.ARTIFACTS)


def site(**peers: dict[str, int]) -> Site:
    ports = dict.fromkeys(("http", "grpc", "gossip", "cluster", "raft", "raft_rpc", "broker", "controller"), 1)
    return Site(Path("/home"), Path("/cache"), Path("/log"), ports, peers)


def test_weaviate_is_told_the_same(stack: dict[str, Any]) -> None:
    here, there = weaviate._environment(site()), environment(stack, "weaviate")
    # What is about one machine's ports and addresses, and the profiler of one process among several.
    local = re.compile("CLUSTER_(ADVERTISE|BIND|IN|GOSSIP|DATA)|PORT$|PATH$|PROFILING")
    assert {k: there.get(k) for k in here if not local.search(k)} == {
        k: v for k, v in here.items() if not local.search(k)
    }
    assert there["AUTOSCHEMA_ENABLED"] == "false" and there["DISABLE_TELEMETRY"] == "true"


def test_kafka_is_told_the_same(stack: dict[str, Any]) -> None:
    here, there = kafka._rows(site()), environment(stack, "kafka")
    local = re.compile(r"listener|voters|log\.dirs|num\.partitions")
    named = {k: there.get("KAFKA_" + k.upper().replace(".", "_")) for k in here if not local.search(k)}
    assert named == {k: v for k, v in here.items() if not local.search(k)}


def test_connect_is_told_the_same(stack: dict[str, Any]) -> None:
    here = dict(connect._rows(site(kafka={"broker": 1}, postgres={"sql": 2})))
    there = environment(stack, "connect")
    named = {k: there.get("CONNECT_" + k.upper().replace(".", "_")) for k in here}
    providers = str(named.pop("config.providers")).split(",")
    assert here.pop("config.providers") in providers and "secrets" in providers
    local = {"bootstrap.servers", "listeners"}
    assert {k: v for k, v in named.items() if k not in local} == {k: v for k, v in here.items() if k not in local}


def test_postgres_can_be_a_source(stack: dict[str, Any]) -> None:
    command = services(stack)["postgres"]["command"]
    assert "wal_level=logical" in command
    assert any(word.startswith("max_slot_wal_keep_size=") for word in command)


# ---------------------------------------------------------------- our image


def test_the_image_copies_what_exists_and_what_the_build_may_see() -> None:
    seen = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for file in (COMPOSE / "Dockerfile", COMPOSE / "jvm" / "Dockerfile"):
        lines = re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+)$", file.read_text(), re.MULTILINE)
        sources = [source for line in lines for source in line.split()[:-1]]
        assert sources
        for source in sources:
            for name in ("fuseki", "connect") if "$" in source else ("",):
                path = source.replace("${SERVER}", name)
                assert (ROOT / path).exists(), path
                assert any(path == one or path.startswith(f"{one}/") for one in seen), f"{path} is ignored"


def test_the_image_is_pinned_small_and_not_root() -> None:
    text = (COMPOSE / "Dockerfile").read_text()
    assert "--require-hashes -r requirements/stack.txt" in text and "--no-deps --no-build-isolation" in text
    assert text.rindex("\nUSER 10001") > text.rindex("FROM ") and "\nHEALTHCHECK" in text
    assert re.findall(r"https?://|index-url", text) == []


def test_the_programs_that_containers_run_exist(stack: dict[str, Any]) -> None:
    text = (COMPOSE / "Dockerfile").read_text() + str([services(stack)[name] for name in OURS])
    modules = set(re.findall(r"-m'?\"?,? '?\"?((?:ops|pipeline)\.[\w.]+)", text))
    assert modules >= {"ops.ready_check", "ops.worker_check", "pipeline.agents"}
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module


def test_the_lock_file_of_the_image_is_a_part_of_the_tests_own() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^(\S+==\S+)", (ROOT / "requirements" / name).read_text(), re.MULTILINE))

    assert pins("stack.txt") - pins("dev.txt") == set()
    assert {pin.split("==")[0] for pin in pins("stack.txt")} >= {"aiokafka", "faust-streaming", "weaviate-client"}


def test_shell_scripts_are_sound() -> None:
    scripts = [COMPOSE / "secrets.sh", COMPOSE / "entrypoint.sh", *(COMPOSE / "jvm").glob("*.sh")]
    assert len(scripts) == 5
    for script in scripts:
        subprocess.run(["bash", "-n", str(script)], check=True, timeout=10)
        assert os.access(script, os.X_OK), script
    assert inspect.cleandoc(scripts[1].read_text()).startswith("#!/bin/sh")


def test_the_check_of_the_java_servers_tells_answers_from_errors() -> None:
    with socketserver.TCPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_address[1])
        codes = [_check(port, path) for path in ("/good", "/bad")]
        server.shutdown()
    assert codes == [0, 1]
    assert _check(port, "/good") == 1


class _Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/good" else 503)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _check(port: str, path: str) -> int:
    script = str(COMPOSE / "jvm" / "check.sh")
    return subprocess.run([script, port, path], capture_output=True, timeout=20, check=False).returncode
