"""What handlers are given: our own objects, which Litestar need not validate."""

from typing import TypeVar

from litestar.di import NamedDependency
from litestar.params import SkipValidation

T = TypeVar("T")
Given = NamedDependency[SkipValidation[T]]
