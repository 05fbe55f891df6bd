"""npumake secure: sign and encrypt a compiled model

example:
  npumake secure out/model.hybrid --security security.yaml -o model.secure.hybrid
  npumake secure out/model.hybrid --signature-key model.key --model-certificate model.pem \\
    --vendor-certificate vendor.pem -o signed.hybrid
  npumake show model.secure.hybrid --vendor-certificate vendor.pem

Without an encryption key it only signs. A security file is SyNAP's YAML with encryption_key,
signature_key, model_certificate and vendor_certificate.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from npumake.errors import ProjectError

NEEDED = ("signature_key", "model_certificate", "vendor_certificate")
KEY_FILES = {
    "encryption_key": "32 bytes, or 64 hexadecimal digits; left out: only signed",
    "signature_key": "private key of the model certificate, PEM: RSA, ECDSA or Ed25519",
    "model_certificate": "issued by the vendor; it goes into the file",
    "vendor_certificate": "that of the authority; users of the model need it",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="HYBRID", help="a file, or PROJECT[:TARGET]")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--security", type=Path, metavar="YAML", help="names the four files")
    for name, help_text in KEY_FILES.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=Path, metavar="FILE", help=help_text)


def run(arguments: argparse.Namespace) -> int:
    from npumake.bundle.certificates import called
    from npumake.bundle.secure import Keys, Signer, secured
    from npumake.cache.publish import replacing
    from npumake.cli.selection import artifact_path
    from npumake.runtime.picture import read

    files = _files(arguments)
    signer = Signer.read(files["model_certificate"], files["signature_key"])
    keys = Keys.read(files["vendor_certificate"], files.get("encryption_key"))
    model = artifact_path(arguments.model)
    data = secured(read(model), model.name, signer, keys)
    with replacing(arguments.output) as temporary:
        temporary.write_bytes(data)
    how = "signed" if keys.encryption is None else "encrypted and signed"
    print(f"{how} by {called(signer.certificate.subject)}: {arguments.output}")
    return 0


def _files(arguments: argparse.Namespace) -> dict[str, Path]:
    """The files, by the keys of a security file. Raises ProjectError."""
    from npumake.dialects.synaptics.metafile import secrets

    files = {name: getattr(arguments, name) for name in KEY_FILES if getattr(arguments, name)}
    if arguments.security and files:
        first = next(iter(files)).replace("_", "-")
        raise ProjectError("a security file and a file beside it", f"--{first}", "keep one of them")
    if arguments.security:
        return secrets(arguments.security)
    if missing := [name for name in NEEDED if name not in files]:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        raise ProjectError(f"missing {flags}", hint="or name a --security file that holds them")
    return files
