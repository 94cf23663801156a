"""The stopping of services and containers, and the killing of processes."""

from __future__ import annotations

from ledger.daemons.sweep.model import DESTROYS, DONE, KILLS, STOPS
from ledger.daemons.sweep.prefilter.known import Known, flags, operands
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.daemons.sweep.prefilter.shell import Command

STOP_SERVICE = Rule("stop-service", DONE, STOPS, "A service of the system is stopped, started anew or disabled.")
STOP_CONTAINER = Rule(
    "stop-container", DONE, STOPS, "A container is stopped or removed that the session did not start."
)
STOP_DEPLOYED = Rule("stop-deployed", DONE, STOPS, "What is deployed is scaled down, started anew or taken away.")
STOP_MACHINE = Rule("stop-machine", DONE, STOPS, "The machine itself is halted or started anew.")
DROP_VOLUMES = Rule("drop-volumes", DONE, DESTROYS, "Containers' volumes, or all that is unused, are deleted.")
CLUSTER_DELETE = Rule("cluster-delete", DONE, DESTROYS, "Something is deleted from a cluster.")
KILL_WIDE = Rule("kill-wide", DONE, KILLS, "Processes are killed by a name or a port, whosever they are.")
KILL = Rule("kill", DONE, KILLS, "A process is killed.")

_STOPPING = {"stop", "disable", "mask", "restart", "kill", "reload-or-restart", "isolate"}
_MACHINE = {"poweroff", "reboot", "halt", "suspend", "rescue", "emergency"}
_ENGINES = {"docker", "podman", "nerdctl"}


def rule_of(command: Command, known: Known) -> Rule | None:
    name, given = command.name, command.words[1:]
    if name == "systemctl":
        verbs = operands(given)[:1]
        if verbs and verbs[0] in _MACHINE:
            return STOP_MACHINE
        return STOP_SERVICE if verbs and verbs[0] in _STOPPING else None
    if name in ("service", "rc-service", "initctl"):
        return STOP_SERVICE if _STOPPING & set(given) else None
    if name in ("shutdown", "reboot", "halt", "poweroff") or (name == "init" and given[:1] in (["0"], ["6"])):
        return STOP_MACHINE
    if name in ("launchctl", "supervisorctl", "pm2", "brew", "nginx", "apachectl", "pg_ctl", "sv", "svc", "monit"):
        verbs_of = {"stop", "restart", "unload", "bootout", "delete", "kill", "remove", "down", "quit", "-k"}
        return STOP_SERVICE if verbs_of & set(given) else None
    if name in _ENGINES or name in ("docker-compose", "podman-compose"):
        return _container(name, given, known)
    if name in ("kubectl", "oc", "helm"):
        return _cluster(name, given)
    if name in ("kill", "pkill", "killall", "fuser", "taskkill", "skill", "tmux", "screen", "npx"):
        return _kill(name, given)
    return None


def _container(name: str, given: list[str], known: Known) -> Rule | None:
    plain, on = operands(given), flags(given)
    if name not in _ENGINES or plain[:1] == ["compose"]:
        if "down" in plain and on & {"-v", "--volumes", "--rmi"}:
            return DROP_VOLUMES
        return STOP_CONTAINER if {"down", "stop", "kill", "rm", "restart"} & set(plain[:6]) else None
    if plain[:1] == ["container"]:
        plain = plain[1:]
    if plain[:2] in (["volume", "rm"], ["volume", "prune"], ["system", "prune"], ["stack", "rm"], ["swarm", "leave"]):
        return DROP_VOLUMES
    if plain[:1] in (["stop"], ["kill"], ["rm"], ["restart"], ["pause"], ["prune"]):
        own = [word for word in plain[1:] if word in known.containers]
        return None if own and len(own) == len(plain) - 1 else STOP_CONTAINER
    return None


def _cluster(name: str, given: list[str]) -> Rule | None:
    plain = operands(given)
    if {"delete", "uninstall", "drain", "cordon"} & set(plain[:4]):
        return CLUSTER_DELETE
    if "--replicas=0" in given or ("scale" in plain and "0" in given):
        return STOP_DEPLOYED
    return STOP_DEPLOYED if "rollout" in plain and {"restart", "undo"} & set(plain) else None


def _kill(name: str, given: list[str]) -> Rule | None:
    if name == "tmux":
        return KILL_WIDE if {"kill-server", "kill-session"} & set(given[:3]) else None
    if name == "screen":
        return KILL_WIDE if "quit" in given else None
    if name == "npx":
        return KILL_WIDE if given[:1] == ["kill-port"] else None
    if name == "fuser":
        return KILL_WIDE if flags(given) & {"-k", "--kill"} else None
    if name in ("pkill", "killall", "taskkill", "skill"):
        return None if {"-0", "-l"} & set(given) else KILL_WIDE
    if {"-0", "-l", "-L"} & set(given):
        return None
    at = 2 if given[:1] in (["-s"], ["-n"]) else 0
    targets = [word for word in given[at:] if not word.startswith("-") or word == "-1"]
    if all(word.startswith(("$!", "%", "${!")) for word in targets):  # what this shell itself has started
        return None
    return KILL_WIDE if any(word.startswith(("$(", "`", "$…")) or word == "-1" for word in targets) else KILL
