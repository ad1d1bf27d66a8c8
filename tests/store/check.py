"""Checks of servers that share a store: check.py BINARY WORK LOGS, called by run.sh.

Each check is told with what was seen; the last line counts. The exit code is 0 where none failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from servers import Postgres, Proxy, Server, until

OPERATOR = "ops-key-of-the-checks"
# Within what a change is to be known everywhere when all is well, and after a loss: the longest wait
# until a lost store is asked again, and a little.
SOON_S = 1.0
BACK_S = 8.0


class Checks:
    """What was checked, and how it ended."""

    def __init__(self) -> None:
        self.passed = self.failed = 0

    def that(self, is_so, what: str) -> None:
        """Counts a check and tells it."""
        if is_so:
            self.passed += 1
        else:
            self.failed += 1
        print(f"{'ok  ' if is_so else 'FAIL'} {what}", flush=True)

    def soon(self, is_so, what: str, within_s: float = SOON_S) -> None:
        """The same of something that becomes so in time."""
        took = until(is_so, within_s)
        told = f"after {took:.2f} s" if took is not None else f"not within {within_s} s"
        self.that(took is not None, f"{what} ({told})")


def routing(state: str) -> dict:
    """A request with one question."""
    criteria = {"billing": None, "access": None, "bug": None}
    question = {"type": "choice", "instructions": "Which team?", "criteria": criteria}
    return {"state": state, "questions": {"team": question}}


def order(name: str, count: int = 24) -> dict:
    """A task from examples of which most are answered alike."""
    answers = ["access" if n % 4 == 0 else "bug" for n in range(count)]
    examples = [
        {"request": routing(f"Ticket {n} is about matter {n * 7 % 13}."), "answer": answer}
        for n, answer in enumerate(answers)
    ]
    return {"id": name, "examples": examples}


def abstention(name: str) -> dict:
    """The same of an abstention task."""
    body = order(name, 24)
    for example in body["examples"][::3]:
        example["answer"] = None
    return {**body, "option": {"append": "It is not known."}}


def together(*calls) -> list:
    """What calls give that are made at one moment."""
    results: list = [None] * len(calls)

    def run(at: int) -> None:
        results[at] = calls[at]()

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Fleet:
    """Three servers on one store, the third through a proxy."""

    def __init__(self, binary: Path, postgres: Postgres, logs: Path) -> None:
        self.binary, self.postgres, self.logs = binary, postgres, logs
        self.started: list[Server] = []
        self.proxy = Proxy(postgres.port)
        shared = ["--keys", "store", "--api-key", f"ops={OPERATOR}", "--fake-step-ms", "5"]
        shared += ["--store-poll", "1s", "--store-timeout", "1s"]
        password = postgres.password
        file = str(postgres.work / "password")
        direct, proxied = postgres.url(), postgres.url(password, self.proxy.port)
        self.all = together(
            lambda: self.start("a", ["--store", direct, *shared], {"PGPASSWORD": password}),
            lambda: self.start("b", ["--store", direct, "--store-password-file", file, *shared]),
            lambda: self.start("c", ["--store", proxied, *shared]),
        )
        self.a, self.b, self.c = self.all

    def start(self, name: str, arguments: list[str], environment=None) -> Server:
        """A server, which is stopped at the end."""
        server = Server(self.binary, self.logs / f"{name}.log", arguments, environment)
        self.started.append(server)
        return server

    def keys(self, *arguments: str) -> subprocess.CompletedProcess:
        """`docket keys` on the store."""
        environment = {**os.environ, "PGPASSWORD": self.postgres.password}
        command = [self.binary, "keys", *arguments, "--store", self.postgres.url()]
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)


def has_task(server: Server, key: str, name: str) -> bool:
    """Whether the task is applied to a question there."""
    reply = server.ask("/v1/systemone", routing("Something new."), key)
    return reply.status == 200 and name in (reply.headers["x-decisio-tasks"] or "").split(",")


def check_keys(check: Checks, fleet: Fleet) -> tuple[str, str]:
    """Keys of the store: made, shared, and none lost where several are made at once."""
    check.that(fleet.a.ask("/v1/tasks", key="nobody").status == 401, "without a key nobody is let in")
    made = fleet.keys("new", "acme", "--note", "first")
    check.that(made.returncode == 0 and made.stdout.startswith("dk_"), f"a key is made: {made.stderr.strip()}")
    key = made.stdout.strip()
    for server in fleet.all:
        check.soon(lambda: server.ask("/v1/tasks", key=key).status == 200, "it is let in")
    others = together(*(lambda n=n: fleet.keys("new", f"team{n}") for n in range(4)))
    listed = fleet.keys("list", "--json").stdout
    ids = [other.stdout.strip()[3:11] for other in others]
    check.that(all(one and one in listed for one in ids), "of keys made at one moment none is lost")
    return key, others[0].stdout.strip()


def check_sharing(check: Checks, fleet: Fleet, key: str) -> None:
    """A task that is registered on one serves on all, with the same bytes."""
    reply = fleet.a.ask("/v1/tasks", order("routing"), key)
    check.that(reply.status == 200, f"a task is registered on one: {reply.status}")
    for server in fleet.all:
        check.soon(lambda: has_task(server, key, "routing"), "it is applied")
    full = [server.ask("/v1/tasks?full=1", key=key).json["tasks"] for server in fleet.all]
    check.that(full[0] == full[1] == full[2] and len(full[0]) == 1, "its record is the same on all")
    asked = [server.ask("/v1/systemone", routing("Again."), key).json["answers"] for server in fleet.all]
    check.that(asked[0] == asked[1] == asked[2], "and so are answers")
    status = fleet.c.ask("/v1/tasks/routing/status", key=key)
    check.that(status.json["state"] == "done", "its status is told by a server that did not register it")
    reply = fleet.b.ask("/v1/abstention/tasks", abstention("unsure"), key)
    check.that(reply.status == 200, f"an abstention task is registered on another: {reply.status}")
    count = lambda server: len(server.ask("/v1/abstention/tasks", key=key).json["tasks"])
    for server in fleet.all:
        check.soon(lambda: count(server) == 1, "it is there")
    foreign = fleet.start("foreign", ["--store", fleet.postgres.url(fleet.postgres.password),
                                      "--keys", "store", "--prompt-tail", "compact"])
    listed = len(foreign.ask("/v1/tasks", key=key).json["tasks"])
    check.that(listed == 1 and not has_task(foreign, key, "routing"),
               "under another layout a task is listed and not applied")
    check.that(foreign.stop() == 0, "that server stops")


def check_conflicts(check: Checks, fleet: Fleet, key: str) -> None:
    """Of changes that contradict each other one holds, and the other is told."""
    replies = together(
        lambda: fleet.a.ask("/v1/tasks", order("twice", 80), key),
        lambda: fleet.b.ask("/v1/tasks", order("twice", 84), key),
    )
    statuses = sorted(reply.status for reply in replies)
    check.that(statuses == [200, 409], f"of two registrations at one moment one wins: {statuses}")
    for reply in (reply for reply in replies if reply.status == 409):
        told = reply.json["detail"]
        check.that("task twice" in told and told.count("version") == 2, f"the other is told: {told}")
        check.that(reply.headers["x-docket-reason"] == "version_conflict", "with the reason in a header")
    won = next(reply for reply in replies if reply.status == 200).json
    count = lambda server: [task["n_examples"] for task in server.ask("/v1/tasks", key=key).json["tasks"]
                            if task["id"] == "twice"]
    for server in fleet.all:
        check.soon(lambda: count(server) == [won["n_examples"]], "all have the one that won")

    replies = together(
        lambda: fleet.a.ask("/v1/tasks", order("twice", 600), key),
        lambda: time.sleep(0.15) or fleet.c.ask("/v1/tasks/twice", key=key, method="DELETE"),
    )
    statuses = [reply.status for reply in replies]
    check.that(statuses == [409, 200], f"a removal wins over a registration under way: {statuses}")
    for server in fleet.all:
        check.soon(lambda: not has_task(server, key, "twice"), "it is gone")
    made = fleet.b.metric('docket_store_changes_total{end="made"}', OPERATOR)
    check.that(made >= 1, f"changes are counted: {made:g} on one")


def check_revocation(check: Checks, fleet: Fleet, key: str) -> None:
    """A key that is revoked is refused everywhere, soon."""
    revoked = fleet.keys("revoke", key[3:11])
    check.that(revoked.returncode == 0, f"a key is revoked: {revoked.stdout.strip()}")
    for server in fleet.all:
        check.soon(lambda: server.ask("/v1/tasks", key=key).status == 401, "it is refused")


def is_reached(server: Server) -> bool:
    """What health says of the store."""
    return server.ask("/health", key=OPERATOR).json["details"]["store"]["reached"]


def check_lost(check: Checks, fleet: Fleet, key: str, servers: list[Server], how: str) -> None:
    """While the store is lost what is known is served, and changes are refused."""
    for server in servers:
        check.soon(lambda: not is_reached(server), f"{how}: health says so", BACK_S)
        check.that(server.metric("docket_store_lost", OPERATOR) == 1, f"{how}: a metric says so")
        check.that(has_task(server, key, "routing"), f"{how}: tasks are applied, keys are let in")
        for reply in (
            server.ask("/v1/tasks", order("never"), key),
            server.ask("/v1/tasks/routing", key=key, method="DELETE"),
        ):
            after = reply.headers["retry-after"]
            check.that(reply.status == 503 and after and int(after) >= 1,
                       f"{how}: a change is refused: {reply.status}, Retry-After {after}")
        check.that(server.ask("/health?ready=1").status == 200, f"{how}: it is ready for questions")


def check_losses(check: Checks, fleet: Fleet, key: str, doomed: str) -> None:
    """The store is lost in several ways, and what was missed is caught up with."""
    fleet.proxy.cut(True)
    check_lost(check, fleet, key, [fleet.c], "cut off")
    reply = fleet.a.ask("/v1/tasks", order("meanwhile"), key)
    check.that(reply.status == 200, "others go on registering")
    check.that(fleet.a.ask("/v1/tasks/routing", key=key, method="DELETE").status == 200, "and removing")
    check.that(fleet.keys("revoke", doomed[3:11]).returncode == 0, "and a key is revoked")
    check.that(fleet.c.ask("/v1/tasks", key=doomed).status == 200, "who is cut off does not know")
    fleet.proxy.cut(False)
    check.soon(lambda: has_task(fleet.c, key, "meanwhile"), "it catches up with the task", BACK_S)
    check.soon(lambda: not has_task(fleet.c, key, "routing"), "with the removal")
    check.soon(lambda: fleet.c.ask("/v1/tasks", key=doomed).status == 401, "and with the key")
    check.that(fleet.c.metric("docket_store_reconnects_total", OPERATOR) >= 1, "a reconnect is counted")
    check.that(fleet.a.ask("/v1/tasks", order("routing"), key).status == 200, "all is as before")
    check.soon(lambda: has_task(fleet.c, key, "routing"), "it is told of changes again")

    fleet.proxy.hang(True)
    check_lost(check, fleet, key, [fleet.c], "hanging")
    fleet.proxy.hang(False)
    check.soon(lambda: is_reached(fleet.c), "it is reached again", BACK_S)

    for how in (signal.SIGINT, signal.SIGQUIT):
        fleet.postgres.stop(how)
        check_lost(check, fleet, key, fleet.all, f"database ended by {how.name}")
        fleet.postgres.start()
        for server in fleet.all:
            check.soon(lambda: is_reached(server), "it is reached again", BACK_S)
        name = f"after-{how.name.lower()}"
        check.that(fleet.b.ask("/v1/tasks", order(name), key).status == 200, "changes are made again")
        for server in fleet.all:
            check.soon(lambda: has_task(server, key, name), "and told of")


def check_history(check: Checks, fleet: Fleet, key: str) -> None:
    """A store that was restored from a backup is read anew."""
    fleet.postgres.sql("UPDATE docket_changes SET mark = 'restored'; "
                       "DELETE FROM docket_records WHERE id = 'meanwhile'")
    for server in fleet.all:
        check.soon(lambda: not has_task(server, key, "meanwhile"), "what a restored store lacks is gone", BACK_S)
        check.that(has_task(server, key, "routing"), "and what it has stays")
    check.that(fleet.a.ask("/v1/tasks", order("meanwhile"), key).status == 200, "changes go on")
    for server in fleet.all:
        check.soon(lambda: has_task(server, key, "meanwhile"), "and are told of")


def check_starts(check: Checks, fleet: Fleet, key: str) -> None:
    """What a server does not start with, and what none of them shows."""
    postgres = fleet.postgres
    postgres.sql("INSERT INTO docket_schema (version) VALUES (99)")
    newer = fleet.start("newer", ["--store", postgres.url(postgres.password)])
    told = newer.told()
    check.that(newer.base is None and "has schema 99" in told, "a newer schema is an error of the start")
    postgres.sql("DELETE FROM docket_schema WHERE version = 99")
    wrong = fleet.start("wrong", ["--store", postgres.url("wr0ngpass")])
    told = wrong.told()
    check.that(wrong.base is None and "password authentication failed" in told and "wr0ngpass" not in told,
               "a wrong password is told and not shown")
    small = fleet.start("small", ["--store", postgres.url(postgres.password), "--keys", "store",
                                  "--store-records-max", "1"])
    reply = small.ask("/v1/tasks", order("one too many"), key)
    check.that(reply.status == 422 and "tasks_full" in reply.text, f"a full store is told: {reply.text[:160]}")
    check.that(small.stop() == 0, "that server stops")
    shown = subprocess.run(
        [fleet.binary, "config", "show", "--engine", "fake", "--store", postgres.url(postgres.password)],
        check=True, capture_output=True, text=True,
    )
    check.that("# store = 1 that are not shown" in shown.stdout, "the settings do not show the address")
    secrets = [postgres.password, key]
    seen = shown.stdout + shown.stderr + "".join(server.told() for server in fleet.started)
    seen += fleet.a.ask("/health", key=OPERATOR).text + fleet.c.ask("/health", key=OPERATOR).text
    check.that(not any(secret in seen for secret in secrets), "no log, no health and no setting has a secret")
    rows = int(postgres.sql("SELECT count(*) FROM docket_records WHERE body IS NOT NULL"))
    check.that(key[12:].encode().hex() not in postgres.sql("SELECT string_agg(encode(body, 'hex'), '') FROM docket_records"),
               f"the store has hashes of keys only, in {rows} records")


def check_tls(check: Checks, fleet: Fleet) -> None:
    """TLS to a database whose certificate is vouched for, and to one whose is not."""
    postgres, work = fleet.postgres, fleet.postgres.work
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE",
         "-keyout", work / "data/server.key", "-out", work / "data/server.crt"],
        check=False, capture_output=True,
    )
    if made.returncode != 0:
        print("skipped: no openssl")
        return
    owner = (work / "data").stat()
    os.chown(work / "data/server.key", owner.st_uid, owner.st_gid)
    (work / "data/server.key").chmod(0o600)
    certificate = work / "authority.pem"
    certificate.write_bytes((work / "data/server.crt").read_bytes())
    postgres.stop()
    postgres.more = ["-c", "ssl=on"]
    postgres.start()
    url = postgres.url(postgres.password, more="?sslmode=require")
    vouched = fleet.start("vouched", ["--store", url, "--store-ca", str(certificate)])
    check.that(vouched.base is not None, "TLS with a certificate that is vouched for")
    sessions = postgres.sql("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                            "WHERE ssl AND application_name = 'docket'")
    check.that(int(sessions) >= 1, f"its sessions are encrypted: {sessions}")
    check.that(vouched.stop() == 0, "that server stops")
    strange = fleet.start("strange", ["--store", url])
    check.that(strange.base is None and "ertificate" in strange.told(), "and none with one that is not")


def main() -> int:
    """Runs all of it."""
    binary, work, logs = (Path(text) for text in sys.argv[1:4])
    check, postgres = Checks(), Postgres(work, logs)
    fleet = None
    try:
        early = Server(binary, logs / "early.log", ["--store", postgres.url("s3cretpass")])
        told = early.told()
        check.that(early.base is None and early.process.poll() == 1, "without its store a server does not start")
        check.that("--store: postgres://127.0.0.1" in told and "s3cretpass" not in told, "and says why")
        postgres.start()
        fleet = Fleet(binary, postgres, logs)
        check.that(all(server.base for server in fleet.all), "three servers start together on an empty store")
        key, doomed = check_keys(check, fleet)
        check_sharing(check, fleet, key)
        check_conflicts(check, fleet, key)
        check_losses(check, fleet, key, doomed)
        check_history(check, fleet, key)
        check_starts(check, fleet, key)
        check_revocation(check, fleet, key)
        check_tls(check, fleet)
        check.that(all(server.stop() == 0 for server in fleet.all), "all stop with exit code 0")
    finally:
        for server in fleet.started if fleet else []:
            server.stop()
        postgres.stop()
        print(f"{check.passed} passed, {check.failed} failed", flush=True)
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
