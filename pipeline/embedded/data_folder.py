"""The data folder of the embedded profile: one writer process at a time, and where it can be reached."""

import fcntl
import json
import os
from pathlib import Path
from types import TracebackType

from pipeline.errors import BackendUnavailable, ShinsenError


class DataFolderBusy(ShinsenError):
    """Another process writes to this folder: talk to it, or stop it first."""


class DataFolder:
    """Holds the lock while open. The lock file says who holds it: `{"pid": ..., "url": ...}`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def lock_file(self) -> Path:
        """Return the path of the lock file."""
        return self.path / "lock.json"

    def __enter__(self) -> "DataFolder":
        """Make the folder and take the lock. Raises DataFolderBusy, BackendUnavailable when it cannot be used."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BackendUnavailable(
                f"{self.path}: {error.strerror}; the data folder must be writable: check its owner, mode and disk, "
                "or set SHINSEN_DATA to another folder"
            ) from error
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            holder = holder_of(self.path)
            raise DataFolderBusy(
                f"{self.path} is in use by process {holder.get('pid', '?')} "
                f"({holder.get('url') or 'no server'}): stop it, or set SHINSEN_DATA to another folder"
            ) from None
        self._file = handle
        try:
            self.announce("")
            _refuse_lost_state(self.path)
        except OSError as error:
            self.__exit__(None, None, None)
            raise BackendUnavailable(f"{self.lock_file}: {error.strerror}; free space, then start again") from error
        except BackendUnavailable:
            self.__exit__(None, None, None)
            raise
        return self

    def announce(self, url: str) -> None:
        """Write where this process can be reached; an empty text when it serves nothing."""
        if self._file is None:
            raise RuntimeError("the data folder is not locked")
        content = json.dumps({"pid": os.getpid(), "url": url}).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, content, 0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the lock."""
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None


def _refuse_lost_state(path: Path) -> None:
    """Refuse indexes without the records and manifests they belong to: nothing would ever clear them up."""
    state = path / "state.db"
    if state.is_file() and state.stat().st_size:
        return
    indexes = sorted(found.name for pattern in ("chunks-*.db", "graph-*") for found in path.glob(pattern))
    if indexes:
        raise BackendUnavailable(
            f"{state} is missing or empty, but {', '.join(indexes)} are here: put {state.name} back from a backup, "
            "or remove them to begin with an empty folder"
        )


def holder_of(path: Path) -> dict[str, object]:
    """Return what the lock file says, `{}` when nobody holds the folder. Never raises for a missing folder."""
    try:
        with (path / "lock.json").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return dict(json.loads(file.read() or b"{}"))
    except (OSError, ValueError):
        return {}
    return {}
