"""The register's repository: pulls, commits the files that the sweep wrote, pushes the branch it is on. No more.

A commit holds exactly the files it is given; what others have staged or left untracked stays as it is. A push takes
the current branch to the branch of the same name: no force, no tags, no detached HEAD. Nothing ever prompts. Where a
URL is expected of the remote and git would use another, for fetching or for pushing, everything is refused; and what
is fetched or pushed then goes by that URL, whatever becomes of the remote's settings meanwhile.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from ledger.daemons.sweep import commands
from ledger.daemons.sweep.config import GitKeys
from ledger.daemons.sweep.judging.prompt import Redact
from ledger.daemons.sweep.register.texts import one_line
from ledger.errors import LedgerError

TIME_S = 120.0
WORDS_CHARS_MAX = 400

# Nothing in the background, no prompt, no program but git's own and the repository's hooks
_SETTINGS = (
    "gc.auto=0",
    "maintenance.auto=false",
    "core.fsmonitor=false",
    "core.editor=true",
    "core.pager=cat",
    "commit.gpgSign=false",
    "push.followTags=false",
    "push.gpgSign=false",
    "credential.interactive=false",
    "advice.detachedHead=false",
    "fetch.recurseSubmodules=false",
    "submodule.recurse=false",
    "rebase.autoStash=false",
    "rebase.autoSquash=false",
    "rebase.updateRefs=false",
)
_NEVER_PROMPT = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",  # and it has no terminal
    "GCM_INTERACTIVE": "never",
    "GIT_EDITOR": "true",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C",
}
# What says of another repository, of whose hook we may be a child, and what contradicts --literal-pathspecs
_LEFT_AWAY = frozenset(
    f"GIT_{name}"
    for name in (
        *("DIR", "WORK_TREE", "IMPLICIT_WORK_TREE", "COMMON_DIR", "INDEX_FILE", "PREFIX", "INTERNAL_SUPER_PREFIX"),
        *("OBJECT_DIRECTORY", "ALTERNATE_OBJECT_DIRECTORIES", "QUARANTINE_PATH", "NAMESPACE", "REPLACE_REF_BASE"),
        *("GRAFT_FILE", "SHALLOW_FILE", "GLOB_PATHSPECS", "NOGLOB_PATHSPECS", "ICASE_PATHSPECS"),
    )
)
_FETCHED = "FETCH_HEAD"
_NO_SUCH_REF = 2  # exit code of `git ls-remote --exit-code`


class GitFailed(LedgerError):
    code = "git_failed"
    hint = "Nothing is lost: what is written waits in the register's folder, and the next run goes on from there."


class GitRefused(LedgerError):
    """The repository is not as it should be: nothing was read or written."""

    code = "git_refused"


class Repository:
    """The repository that `folder` lies in."""

    def __init__(self, folder: Path, keys: GitKeys, redact: Redact) -> None:
        self._folder = folder
        self._keys = keys
        self._redact = redact
        self._pinned = f"expected-{secrets.token_hex(8)}" if keys.expected_remote_url else ""

    def check(self) -> None:
        """Looks whether all is as it should be, and changes nothing. Raises GitRefused."""
        keys = self._keys
        if not self._is_there():
            raise GitRefused(
                f"refusing: {self._folder} is in no git repository",
                hint="`ledgerd sweep init --git` makes one; or set git.enabled = false.",
            )
        if (self._folder / ".git").is_symlink():
            raise GitRefused(
                f"refusing: {self._folder / '.git'} is a link",
                hint="Another repository would be written to. Put the repository itself there.",
            )
        branch = self.branch()
        if not branch:
            raise GitRefused(
                f"refusing: the repository of {self._folder} is on no branch", hint="Check a branch out there."
            )
        if keys.branch and branch != keys.branch:
            raise GitRefused(
                f"refusing: the repository of {self._folder} is on branch {branch}, not {keys.branch}",
                hint="Check that branch out, or change git.branch.",
            )
        if keys.push and not self._remote_urls():
            raise GitRefused(
                f"refusing: there is no remote {keys.remote}", hint="`git remote add` it, or change git.remote."
            )
        self._refuse_other_remote()

    def branch(self) -> str:
        """The branch that is checked out, whether or not it has a commit; empty for none."""
        found = self._git("symbolic-ref", "--quiet", "--short", "HEAD", check=False)
        return found.stdout.decode(errors="replace").strip() if found.exit_code == 0 else ""

    def make(self) -> None:
        """Makes the folder a repository of its own. Raises GitFailed."""
        self._git("init", "--quiet", "--initial-branch=main")

    def pull(self) -> None:
        """Takes in what the remote's branch has: a fast forward, or our own commits put on top of it. Raises
        GitFailed where neither works without a person; nothing is left half done."""
        branch, remote = self.branch(), self._keys.remote
        self._refuse_other_remote()
        head = f"refs/heads/{branch}"
        if not self._has_branch(head):
            return
        self._git("fetch", "--quiet", "--no-tags", "--", self._target, head)
        self._note_remote_branch(branch, _FETCHED)
        if self._is_ancestor(_FETCHED, "HEAD"):
            return
        if not self._head() or self._is_ancestor("HEAD", _FETCHED):
            self._git("merge", "--quiet", "--ff-only", _FETCHED)
            return
        rebased = self._git("rebase", "--quiet", _FETCHED, check=False)
        if rebased.exit_code:
            self._git("rebase", "--abort", check=False)
            raise GitFailed(
                f"{branch} and that of {remote} have gone different ways{self._said(rebased)}",
                hint="Merge them by hand in the register's folder; nothing was changed.",
            )

    def commit(self, files: Sequence[Path], subject: str) -> str:
        """Commits these files, named from the folder, and nothing else; the id of the commit, also where nothing was
        new. Raises GitFailed, and then none of them is staged."""
        names = [str(path) for path in files]
        changed = self._git("status", "--porcelain", "--untracked-files=all", "--ignored", "--", *names).stdout
        if changed:
            self._git("add", "--intent-to-add", "--force", "--", *names)
            done = self._git(
                "commit", "--quiet", "--only", "--no-status", "-m", one_line(subject, 200), "--", *names, check=False
            )
            if done.exit_code or done.timed_out:
                self._unstage(names)
                raise GitFailed(f"the commit failed{self._said(done)}")
        return self._head()

    def push(self) -> bool:
        """Pushes the current branch to the branch of its name where the remote lacks something; whether it did.
        Raises GitFailed, GitRefused."""
        branch, remote = self.branch(), self._keys.remote
        if not branch:
            raise GitFailed("the repository is on no branch, and nothing else is pushed")
        self._refuse_other_remote()
        head = self._head()
        if not head:
            return False
        ref = f"refs/heads/{branch}"
        found = self._git("ls-remote", "--exit-code", "--heads", "--", self._target, ref, check=False)
        if found.exit_code == 0 and found.stdout.split()[:1] == [head.encode()]:
            return False
        self._git(
            "-c",
            f"remote.{remote}.mirror=false",
            "push",
            "--quiet",
            "--no-follow-tags",
            "--no-force",
            "--recurse-submodules=no",
            "--",
            self._target,
            f"{ref}:{ref}",
        )
        self._note_remote_branch(branch, head)
        return True

    def git_folder(self) -> Path | None:
        """Where the repository keeps what is its own; None where there is none."""
        found = self._git("rev-parse", "--absolute-git-dir", check=False)
        return Path(os.fsdecode(found.stdout.removesuffix(b"\n"))) if found.exit_code == 0 else None

    def _is_there(self) -> bool:
        return self._folder.is_dir() and self.git_folder() is not None

    def _refuse_other_remote(self) -> None:
        expected = self._keys.expected_remote_url
        if not expected:
            return
        urls = self._remote_urls()
        others = [url for url in urls if url != expected]
        if others or not urls:
            found = others[0] if others else "nothing"
            raise GitRefused(
                f"refusing: the remote {self._keys.remote} is {self._redact(found)}, not git.expected_remote_url",
                hint="Find out who changed it. `git remote -v` in the register's folder shows what git uses.",
            )

    def _remote_urls(self) -> list[str]:
        """All that git would fetch from and push to, rewritten by the settings as git does."""
        urls: list[str] = []
        for which in ((), ("--push",)):
            found = self._git("remote", "get-url", "--all", *which, "--", self._keys.remote, check=False)
            if found.exit_code == 0:
                urls += found.stdout.decode(errors="replace").splitlines()
        return urls

    @property
    def _target(self) -> str:
        """What git fetches from and pushes to: where a URL is expected a name that stands for it and that nobody else
        knows, so that no setting can point it, or rewrite it, elsewhere."""
        return self._pinned or self._keys.remote

    def _pinning(self) -> Mapping[str, str]:
        if not self._pinned:
            return {}
        given = os.environ.get("GIT_CONFIG_COUNT", "")
        first = int(given) if given.isdecimal() else 0
        variables = {"GIT_CONFIG_COUNT": str(first + 2)}
        for number, name in enumerate(("insteadOf", "pushInsteadOf"), first):
            variables[f"GIT_CONFIG_KEY_{number}"] = f"url.{self._keys.expected_remote_url}.{name}"
            variables[f"GIT_CONFIG_VALUE_{number}"] = self._pinned
        return variables

    def _note_remote_branch(self, branch: str, commit: str) -> None:
        """Where the remote's branch stands, for `git status`: git itself notes it only for a remote by its name."""
        if self._pinned:
            self._git("update-ref", f"refs/remotes/{self._keys.remote}/{branch}", commit, check=False)

    def _has_branch(self, ref: str) -> bool:
        found = self._git("ls-remote", "--exit-code", "--heads", "--", self._target, ref, check=False)
        if found.exit_code not in (0, _NO_SUCH_REF):
            raise GitFailed(f"the remote {self._keys.remote} cannot be asked{self._said(found)}")
        return found.exit_code == 0

    def _head(self) -> str:
        found = self._git("rev-parse", "--quiet", "--verify", "HEAD", check=False)
        return found.stdout.decode().strip() if found.exit_code == 0 else ""

    def _is_ancestor(self, one: str, other: str) -> bool:
        return self._git("merge-base", "--is-ancestor", one, other, check=False).exit_code == 0

    def _unstage(self, names: Sequence[str]) -> None:
        """Takes out of the index what was put there for a commit that failed."""
        if self._head():
            self._git("reset", "--quiet", "--", *names, check=False)
        else:
            self._git("rm", "--quiet", "--cached", "--ignore-unmatch", "--", *names, check=False)

    def _git(self, *words: str, check: bool = True) -> commands.Ran:
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        ran = commands.run_to_its_end(
            ["git", "--literal-pathspecs", *settings, *words],
            cwd=self._folder,
            environment=self._environment(),
            time_s=TIME_S,
        )
        if ran.trouble:
            raise GitFailed(f"git could not be started: {ran.trouble}", hint="Install git.")
        if check and (ran.exit_code or ran.timed_out):
            raise GitFailed(f"git {_verb(words)} failed{self._said(ran)}")
        return ran

    def _environment(self) -> dict[str, str]:
        keys = self._keys
        ours = {name: value for name, value in commands.outside_environment().items() if name not in _LEFT_AWAY}
        named = {
            "GIT_AUTHOR_NAME": keys.author_name,
            "GIT_AUTHOR_EMAIL": keys.author_email,
            "GIT_COMMITTER_NAME": keys.author_name,
            "GIT_COMMITTER_EMAIL": keys.author_email,
        }
        return {**ours, **_NEVER_PROMPT, **named, **self._pinning()}

    def _said(self, ran: commands.Ran) -> str:
        if ran.timed_out:
            return f": it took longer than {TIME_S:g} s"
        words = one_line(self._redact((ran.stderr or ran.stdout).decode(errors="replace")), WORDS_CHARS_MAX)
        return f": {words}" if words else ""


def _verb(words: Sequence[str]) -> str:
    return words[2] if words[0] == "-c" else words[0]
