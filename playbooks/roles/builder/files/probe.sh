# Tells what a builder has, as 'key=value' lines; installs nothing but tuxmake, into its own folder, if it is missing.
#   PB_FOLDER  where everything will live ('~' allowed);  PB_TOOLCHAIN  the compiler;  PB_TUXMAKE  version wanted, or empty
#   PB_PROGRAMS  folder of its programs below 'builder', if it came as an archive;  PB_SHIM  script in its place, or empty
#   PB_CROSS   prefix of the binutils of another architecture, or empty;  PB_CONTAINER  image that has it, or empty
# The variable 'look' holds look.sh, which runs where builds run.
set -eu
{ # read as a whole before anything runs: the script comes on stdin
exec </dev/null
export LC_ALL=C.UTF-8
tools=$builder/tools
try=$builder/try.$$
export PATH=${PB_PROGRAMS:+$builder/$PB_PROGRAMS:}$PATH:$tools/bin
mkdir -p "$builder"
missing=
for tool in git tar flock ${PB_CONTAINER:+podman}; do
    command -v "$tool" >/dev/null || missing="$missing $tool"
done
echo "folder=$PB_FOLDER"
echo "here=$PB_HERE"
echo "cpus=$(nproc)"
echo "trees=$(tail -n 20 "$builder/trees" 2>/dev/null | tr '\n' ' ')"
if [ -n "$missing" ]; then
    echo "missing=${missing# }"
    exit 0
fi
if [ -n "$PB_TUXMAKE" ] && ! command -v tuxmake >/dev/null; then
    # Another perfbisect may know this folder by another name and look at the same moment: one of both installs.
    exec 8>>"$builder/tools.lock"
    flock 8
    if ! command -v tuxmake >/dev/null &&
        ! { python3 -m venv "$tools" && "$tools/bin/pip" install --quiet "tuxmake==$PB_TUXMAKE"; } >"$builder/tools.log" 2>&1; then
        missing="$missing tuxmake"
    fi
    exec 8>&-
fi
sandbox_owner "$try"
show_programs "$PB_TOOLCHAIN" "${PB_CROSS}ld" ccache make python3 tuxmake
choose_sandbox "$try"
echo "sandbox=$sandbox"
if [ $sandbox = none ]; then
    echo "missing=${missing# }"
    rm -rf "$try"
    exit 0
fi
visible=("$builder/toolchains" "$tools")
writable=("$try")
PB_TRY=$try PB_MISSING=${missing# } sandboxed bash -s <<<"$look" | head -c 65536
rm -rf "$try"
}
