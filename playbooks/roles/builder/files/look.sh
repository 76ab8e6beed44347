# Looks for what a kernel build needs, in the sandbox, and tries the compiler in the folder PB_TRY; for probe.sh.
set -eu
{
exec </dev/null
missing=$PB_MISSING
for tool in make "$PB_TOOLCHAIN" "${PB_CROSS}ld" flex bison bc perl ccache tar python3 "${PB_CROSS}readelf" "${PB_CROSS}size" gzip; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
echo "missing=${missing# }"
if command -v "$PB_TOOLCHAIN" >/dev/null && command -v "${PB_CROSS}ld" >/dev/null; then
    echo "toolchain=$("$PB_TOOLCHAIN" --version | head -n 1); $("${PB_CROSS}ld" --version | head -n 1)"
    # It is there; does it work, called as kernels will call it? A compiler for another machine, or half of one, is found here.
    cd "$PB_TRY"
    export TMPDIR=$PB_TRY
    printf '%s' "$PB_SHIM" >cc
    chmod 755 cc
    cc=$PB_TOOLCHAIN
    [ -z "$PB_SHIM" ] || cc=$PB_TRY/cc
    echo 'int add(int one, int other) { return one + other; }' >add.c
    if PB_CCACHE= PB_EXTRA_FLAGS= "$cc" -O2 -ffreestanding -c -o add.o add.c >log 2>&1 &&
        "${PB_CROSS}ld" -r -o all.o add.o >>log 2>&1; then
        echo compiles=yes
    else
        echo "compiles=$(head -n 1 log)"
    fi
fi
}
