"""Convert OSErrors to OpErrors with TensorFlow's text: `<path>; No such file or directory`.

TF: third_party/xla/xla/tsl/platform/posix_error.cc (IOError)
"""

from __future__ import annotations

import errno
import os

from runtime.foundation.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
)

_ERRORS: dict[int, type[OpError]] = {
    errno.ENOENT: NotFoundError,
    errno.EEXIST: AlreadyExistsError,
    errno.ENOTDIR: FailedPreconditionError,
    errno.EISDIR: FailedPreconditionError,
    errno.ENOTEMPTY: FailedPreconditionError,
    errno.EACCES: PermissionDeniedError,
    errno.EPERM: PermissionDeniedError,
    errno.EROFS: PermissionDeniedError,
    errno.ENOSPC: ResourceExhaustedError,
    errno.EMFILE: ResourceExhaustedError,
    errno.ENFILE: ResourceExhaustedError,
}


def file_error(error: OSError, path: str) -> OpError:
    """Return the OpError for `error`, an OSError of a failed access to `path`.

    The class is UnknownError if `_ERRORS` does not list the error number.
    """
    number = error.errno or errno.EIO
    return _ERRORS.get(number, UnknownError)(f"{path}; {os.strerror(number)}")
