"""The keys that decide a workload's samples: none of them may change until a bisection ends.

The payload's files are compared by their own checksum. What a bisection keeps of the manifest otherwise is
its goal: the deciding metric, direction and threshold. A timeout may be raised: no sample depends on it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from bisector.errors import RequestError
from bisector.schemas.workload.manifest import WorkloadManifest
from bisector.schemas.workload.workload import MANIFEST, Workload


def sample_keys(manifest: WorkloadManifest) -> dict[str, str]:
    """Return a checksum (SHA-256, hex) for each key of a manifest that decides a sample.

    A manifest may hold passwords in its variables, so values are not kept. Values are those in effect: a
    key that a later version adds changes no checksum while it is not used.
    """
    effective: Mapping[str, object] = {
        "run": manifest.run,
        "parameters": list(manifest.parameters.items()),  # points are executed in this order
        "setup": manifest.setup,
        "cleanup": manifest.cleanup,
        "requires.block_device": manifest.requires.block_device_bytes,
        "metrics": sorted(
            (one.name, one.unit, one.at or one.name, one.optional, one.operands or ())
            for one in manifest.expanded_metrics()
        ),
        "parse": manifest.parse,
        "results": manifest.results,
        "warmup": manifest.warmup,
        "settle": manifest.settle,
        "pause": manifest.pause,
        "environment": manifest.environment.settings(),
        "counters": sorted(manifest.counters),
    }
    return {key: _checksum(value) for key, value in effective.items()}


def require_same_samples(known: Mapping[str, str], workload: Workload, version: str) -> None:
    """Raise RequestError where samples from now on would be of another workload than those so far.

    known: what `sample_keys` gave when the bisection began, nothing in those of earlier versions; version: of
    the perfbisect that began it.
    """
    now = sample_keys(workload.manifest)
    changed = [key for key, checksum in known.items() if now.get(key, checksum) != checksum]
    if not changed:
        return
    where = f"{workload.folder / MANIFEST}" if not workload.script else "the workload of --run"
    keys = ", ".join(f"'{key}'" for key in changed)
    raise RequestError(
        f"{where}: {keys} changed since the bisection began: old and new samples cannot be compared",
        details="checksums then: "
        + ", ".join(f"{key} {known[key][:12]}" for key in changed)
        + "\nchecksums now:  "
        + ", ".join(f"{key} {now[key][:12]}" for key in changed),
        cure=f"put back what perfbisect {version or 'then'} began it with, or start a new bisection",
    )


def _checksum(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
