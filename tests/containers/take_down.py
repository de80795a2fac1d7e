"""Remove the images that `prepare` made; COBRE_KEEP_IMAGES=1 keeps them for the next run."""

import os
import shutil

from podman import podman
from prepare import BASE, IMAGE


def main():
    if shutil.which("podman") is None or os.environ.get("COBRE_KEEP_IMAGES") == "1":
        return
    for image in (IMAGE, BASE):
        podman("rmi", "--force", image, check=False)


if __name__ == "__main__":
    main()
