"""What a server tells of a profile is the profile."""

from __future__ import annotations

import dataclasses
import json

import pytest

from bisector.app.operations.measurement_values import profile_from, profile_to_json
from bisector.errors import InfrastructureError
from bisector.linux.profile import Profile, Symbol

LOCK, READ = Symbol("lock", "kernel"), Symbol("read", "kernel")
PLAIN = Profile("v6.1")


def test_a_counted_profile_comes_whole_from_a_server() -> None:
    profile = Profile(
        "v6.1",
        {LOCK: 7.0, READ: 2.0},
        {READ: 9.0},
        {(READ, LOCK): 7.0, (READ,): 2.0},
        total=9.0,
        samples=4,
        calls={LOCK: 3.0},
        spent={READ: 0.5},
        event="instructions",
        cut=0.01,
        places=3,
        exact=True,
        misses={LOCK: (1.0, 2.0, 3.0), Symbol("missing", "kernel"): (4.0, 5.0, 6.0)},
        geometry="a Skylake",
        callers={("lock", "read"): 7.0},
        spreads={LOCK: 1.0, READ: 0.0},
        no_stacks="none",
        notes=("a note",),
    )
    unsaid = [
        one.name
        for one in dataclasses.fields(profile)
        if getattr(profile, one.name) == getattr(PLAIN, one.name)
    ]
    assert unsaid == ["name", "blocks"], "a new field is to be told, too"
    assert profile_from(json.loads(json.dumps(profile_to_json(profile)))) == profile


def test_what_another_version_says_is_not_taken_for_a_profile() -> None:
    said = profile_to_json(Profile("v6.1", {LOCK: 7.0}))
    del said["misses"]
    with pytest.raises(InfrastructureError, match="not understood"):
        profile_from(said)
