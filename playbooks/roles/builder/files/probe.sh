# Tells what a builder has, as 'key=value' lines; installs nothing but tuxmake, into its own folder, if it is missing.
#   PB_FOLDER  where everything will live ('~' allowed);  PB_TOOLCHAIN  the compiler;  PB_TUXMAKE  version wanted, or empty
#   PB_PROGRAMS  folder of its programs below 'builder', if it came as an archive;  PB_SHIM  script in its place, or empty
#   PB_CROSS   prefix of the binutils of another architecture, or empty
set -eu
{ # read as a whole before anything runs: the script comes on stdin
exec </dev/null
export LC_ALL=C.UTF-8
folder=${PB_FOLDER/#\~/$HOME}
mkdir -p "$folder/builder"
tools=$folder/builder/tools
PATH=${PB_PROGRAMS:+$folder/builder/$PB_PROGRAMS:}$PATH:$tools/bin

missing=
for tool in git make "$PB_TOOLCHAIN" "${PB_CROSS}ld" flex bison bc perl ccache tar python3 "${PB_CROSS}readelf" "${PB_CROSS}size" gzip; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
if [ -n "$PB_TUXMAKE" ] && ! command -v tuxmake >/dev/null; then
    if ! { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet "tuxmake==$PB_TUXMAKE"; } >"$folder/builder/tools.log" 2>&1; then
        missing="$missing tuxmake"
    fi
fi
echo "folder=$folder"
echo "here=$PB_HERE"
echo "missing=${missing# }"
echo "cpus=$(nproc)"
echo "memory_kb=$(awk '/^MemTotal:/ { print $2 }' /proc/meminfo)"
echo "free_kb=$(df -Pk "$folder" | awk 'END { print $4 }')"
echo "now=$(date +%s)"
if command -v "$PB_TOOLCHAIN" >/dev/null && command -v "${PB_CROSS}ld" >/dev/null; then
    echo "toolchain=$("$PB_TOOLCHAIN" --version | head -n 1); $("${PB_CROSS}ld" --version | head -n 1)"
    # It is there; does it work, called as kernels will call it? A compiler for another machine, or half of one, is found here.
    try=$folder/builder/try.$$
    mkdir "$try"
    printf '%s' "$PB_SHIM" >"$try/cc"
    chmod 755 "$try/cc"
    cc=$PB_TOOLCHAIN
    [ -z "$PB_SHIM" ] || cc=$try/cc
    echo 'int add(int one, int other) { return one + other; }' >"$try/add.c"
    if PB_CCACHE= PB_EXTRA_FLAGS= "$cc" -O2 -ffreestanding -c -o "$try/add.o" "$try/add.c" >"$try/log" 2>&1 &&
        "${PB_CROSS}ld" -r -o "$try/all.o" "$try/add.o" >>"$try/log" 2>&1; then
        echo compiles=yes
    else
        echo "compiles=$(head -n 1 "$try/log")"
    fi
    rm -rf "$try"
fi
echo "trees=$(tail -n 20 "$folder/builder/trees" 2>/dev/null | tr '\n' ' ')"
}
