"""How a JSON value was spelled: as bytes, or as what turns its canonical form into them. Knows bytes only.

A spelling costs next to nothing where the canonical form is kept anyway: order of keys, blanks, escapes.
"""

import zstandard

_VERBATIM, _PATCH = b"=", b"~"
_DIGEST_SIZE = 32
_LARGEST_BASE = 1024 * 1024
"""Beyond it a patch would need a window as large."""
_LEVEL = 3


def pack_spelling(raw: bytes, base_digest: bytes | None, base: bytes) -> bytes:
    """The blob that keeps `raw`. Without a digest, the base is not kept and may not be used."""
    if base_digest is not None and len(base) <= _LARGEST_BASE and len(raw) > 2 * _DIGEST_SIZE:
        packer = zstandard.ZstdCompressor(level=_LEVEL, dict_data=_dictionary(base))
        patch = packer.compress(raw)
        if len(patch) + _DIGEST_SIZE < len(raw) // 2:
            return _PATCH + base_digest + patch
    return _VERBATIM + raw


def base_of(blob: bytes) -> bytes | None:
    """Digest of the blob that a spelling is a patch of; None where it stands alone."""
    return blob[1 : 1 + _DIGEST_SIZE] if blob[:1] == _PATCH else None


def unpack_spelling(blob: bytes, base: bytes | None) -> bytes:
    """The bytes that `pack_spelling` kept. Raises ValueError for what is none."""
    if blob[:1] == _VERBATIM:
        return blob[1:]
    if blob[:1] != _PATCH or base is None:
        raise ValueError("expected a spelling: = and bytes, or ~, a digest and a patch")
    try:
        unpacker = zstandard.ZstdDecompressor(dict_data=_dictionary(base))
        return unpacker.decompress(blob[1 + _DIGEST_SIZE :])
    except zstandard.ZstdError as error:
        raise ValueError(f"a spelling cannot be unpacked: {error}") from error


def _dictionary(base: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
