"""What else can hurt a machine, an account or the public: disks, cloud resources, rights, scripts from the network,
packages that are published."""

from __future__ import annotations

import re

from ledger.daemons.sweep.model import DESTROYS, DONE, RISKS
from ledger.daemons.sweep.prefilter.git import SKIP_HOOKS
from ledger.daemons.sweep.prefilter.known import Known, flags, operands
from ledger.daemons.sweep.prefilter.matching import Rule
from ledger.daemons.sweep.prefilter.shell import Command, flow, words

DISK = Rule("overwrite-disk", DONE, DESTROYS, "A disk, a partition or a file system is written over.")
CLOUD_DELETE = Rule("cloud-delete", DONE, DESTROYS, "Resources in a cloud are destroyed.")
APPLY_UNSEEN = Rule("apply-unseen", DONE, RISKS, "Infrastructure is changed without a look at the plan.")
SCHEDULE_LOST = Rule("crontab-remove", DONE, DESTROYS, "All scheduled jobs of a user are deleted.")
ACCOUNT = Rule("account-delete", DONE, DESTROYS, "A user of the machine is deleted.")
GUARDS_DOWN = Rule("guards-down", DONE, RISKS, "A firewall or another guard of the machine is taken down.")
PIPE_TO_SHELL = Rule("pipe-to-shell", DONE, RISKS, "A script from the network is run unseen.")
PUBLISH = Rule("publish", DONE, RISKS, "A package or an image is published; that cannot be taken back.")
OPEN_TO_ALL = Rule("open-to-all", DONE, RISKS, "A file is made writable for everyone.")

_DISKS = words(
    "mkswap wipefs blkdiscard fdisk sfdisk sgdisk parted cryptsetup lvremove vgremove pvremove mdadm hdparm"
)
_CLOUDS = words(
    "aws gcloud az doctl flyctl fly heroku vercel netlify railway wrangler firebase linode-cli hcloud gsutil"
)
_CLOUD_VERBS = (
    "delete",
    "destroy",
    "terminate-",
    "remove",
    "rb",
    "rm",
    "purge",
    "deregister-",
    "apps:destroy",
    "pg:reset",
)
_SHELLS = words("sh bash zsh dash ksh python python3 node perl ruby sudo")
_FETCHED = re.compile(r"<\(\s*(?:curl|wget)\b")
_FETCHES = ("$(curl ", "$(wget ", "`curl ", "`wget ")  # what is fetched is run as it is
_PUBLISHERS: dict[str, tuple[str, ...]] = {
    "npm": ("publish", "unpublish", "deprecate"),
    "pnpm": ("publish",),
    "yarn": ("publish",),
    "bun": ("publish",),
    "twine": ("upload",),
    "cargo": ("publish", "yank"),
    "gem": ("push", "yank"),
    "poetry": ("publish",),
    "uv": ("publish",),
    "flit": ("publish",),
    "hatch": ("publish",),
    "docker": ("push",),
    "podman": ("push",),
    "vsce": ("publish",),
    "flutter": ("publish",),
    "lerna": ("publish",),
    "changeset": ("publish",),
}


def rule_of(command: Command, known: Known) -> Rule | None:
    name, given = command.name, command.words[1:]
    on, plain = flags(given), operands(given)
    if any(
        target.startswith(("/dev/sd", "/dev/nvme", "/dev/disk", "/dev/hd", "/dev/mmc"))
        for _, target in command.redirects
    ):
        return DISK
    if name.startswith("mkfs") or name in _DISKS:
        return None if on & {"-l", "--list"} or "luksDump" in given or not given else DISK
    if name == "dd":
        return _dd(given, command, known)
    if name in ("zfs", "zpool") and "destroy" in plain:
        return DISK
    if name in ("terraform", "tofu", "terragrunt", "pulumi", "cdk", "cdktf", "serverless", "sls", "sam"):
        if {"destroy", "remove", "delete", "down", "taint"} & set(plain[:2]) or "-destroy" in given:
            return CLOUD_DELETE
        unseen = {"-auto-approve", "--auto-approve", "--yes", "-y", "--require-approval=never"} & set(given)
        return APPLY_UNSEEN if unseen and {"apply", "up", "deploy"} & set(plain[:2]) else None
    if name in _CLOUDS:
        return CLOUD_DELETE if any(word.startswith(_CLOUD_VERBS) for word in plain[:5]) else None
    if name == "crontab":
        return SCHEDULE_LOST if "-r" in on or plain == ["/dev/null"] else None
    if name in ("userdel", "deluser", "groupdel"):
        return ACCOUNT
    if name in ("iptables", "ip6tables", "nft", "ufw", "setenforce", "spctl", "csrutil"):
        return GUARDS_DOWN if on & {"-F", "--flush"} or {"flush", "disable", "0", "reset"} & set(plain) else None
    if name in _SHELLS and any(one.name in ("curl", "wget") for one in flow(command) if one is not command):
        return PIPE_TO_SHELL if not plain or plain == ["-"] or "-s" in on else None
    if (name in _SHELLS and _FETCHED.search(command.source)) or "".join(command.words[:1]).startswith(_FETCHES):
        return PIPE_TO_SHELL
    if name == "chmod":
        wide = any(word in ("777", "0777", "a+rwx", "a+w", "o+w", "666") for word in given)
        return (
            OPEN_TO_ALL
            if wide and not all(known.is_scratch(known.place(word, command.folder)) for word in plain[1:])
            else None
        )
    if name == "git" and "config" in given and "core.hooksPath" in given:
        return SKIP_HOOKS
    if (verbs := _PUBLISHERS.get(name)) and any(word in verbs for word in plain[:2]):
        return PUBLISH
    return None


def _dd(given: list[str], command: Command, known: Known) -> Rule | None:
    targets = [word.removeprefix("of=") for word in given if word.startswith("of=")]
    places = [known.place(target, command.folder) for target in targets]
    return DISK if any(place.startswith("/dev/") and place != "/dev/null" for place in places) else None
