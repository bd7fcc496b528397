"""Gets a model from Hugging Face's hub into its own cache, where it is used in place.

What the cache holds whole is taken without asking the network.
"""

import glob
import re
from dataclasses import dataclass
from pathlib import Path

from .wheel import HubError, NoNetwork

WANTED = (
    "config.json",
    "generation_config.json",
    "model*.safetensors",
    "model.safetensors.index.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.*",
)
ID = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w.-]+))?(?:/(.+\.gguf))?")


@dataclass(frozen=True, slots=True)
class HfModel:
    """`path` is a snapshot's directory, or one GGUF file of it; `revision` its commit."""

    id: str
    path: Path
    revision: str


def find(text: str, quiet: bool = False) -> HfModel:
    """The model of an id: `owner/name`, `owner/name@revision`, `owner/name/file.gguf`.

    Raises HubError, NoNetwork where the hub is not reached and the cache lacks it.
    """
    match = ID.fullmatch(text)
    if match is None:
        raise HubError(
            f"hf:{text} is no id: write hf:owner/name, hf:owner/name@revision or "
            "hf:owner/name/file.gguf"
        )
    repository, revision, file = match.groups()
    for local in (True, False):
        folder = _snapshot(text, repository, revision, file, local=local, quiet=quiet)
        if folder is not None and _is_whole(folder, file):
            return HfModel(text, folder / file if file else folder, folder.name)
    what = f"{file!r}" if file else "tokenizer.json or not all of its safetensors"
    raise NoNetwork(
        f"hf:{text} has no {what} in the Hugging Face cache, and the hub brings no more (no "
        "network, or a repository without them)"
    )


def _snapshot(
    text: str, repository: str, revision: str | None, file: str | None, *, local: bool, quiet: bool
) -> Path | None:
    """A directory that may lack files. None: the cache, where nothing else is asked, has none."""
    from huggingface_hub import errors, snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if quiet:
        disable_progress_bars()
    wanted = [glob.escape(file)] if file else list(WANTED)
    try:
        return Path(
            snapshot_download(
                repository, revision=revision, allow_patterns=wanted, local_files_only=local
            )
        )
    except (errors.GatedRepoError, errors.RepositoryNotFoundError):
        raise HubError(
            f"hf:{text} is not on the hub, or asks for a login: accept its licence on its page and "
            "set HF_TOKEN"
        ) from None
    except errors.RevisionNotFoundError:
        raise HubError(f"hf:{text}: the hub has no revision {revision!r} of it") from None
    except Exception as error:  # the package lets those of its HTTP client through
        if local:
            return None
        raise _unreachable(text, error) from None


def _is_whole(folder: Path, file: str | None) -> bool:
    """Whether a snapshot has all we need; the cache keeps half downloads too."""
    from .weights import holds_all_shards

    if file:
        return (folder / file).is_file()
    return (folder / "tokenizer.json").is_file() and holds_all_shards(folder)


def _unreachable(text: str, error: Exception) -> HubError:
    from huggingface_hub import errors

    if isinstance(error, errors.HfHubHTTPError) and error.response is not None:
        return HubError(f"hf:{text}: the hub answers {_line(error)}")
    return NoNetwork(
        f"hf:{text} is not in the Hugging Face cache and the hub is not reached "
        f"({type(error).__name__}: no network?); connect once, or add a directory by its path"
    )


def _line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
