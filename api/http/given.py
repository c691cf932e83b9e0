"""What handlers are given: dependencies that Litestar need not validate, because they are our own objects."""

from typing import Annotated, TypeVar

from litestar.params import Dependency

T = TypeVar("T")
Given = Annotated[T, Dependency(skip_validation=True)]
