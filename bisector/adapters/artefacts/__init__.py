"""Files that hosts give each other: kernels, guest images, the output of boots."""
