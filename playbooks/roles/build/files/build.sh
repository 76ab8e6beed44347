# Builds one kernel on a builder: check out a tree, configure, compile, inspect, pack. Reads PB_* variables, prints
# 'key=value' lines for kernel_builder.py, and leaves results/<key>/artefacts.tar. It fails (code other than 0) only
# for reasons that are not the kernel's; what the kernel did is in 'status='.
#
#   PB_FOLDER   where everything lives: the source at one fixed path (ccache hits depend on it), outputs, ccache
#   PB_TREE     git tree to build;  PB_OBJECTS  object folders it is in (':' between), for a builder on this machine
#   PB_KEY      name of the result; PB_OUT     name of the (warm) output folder
#   PB_ARCH, PB_TOOLCHAIN, PB_BASE, PB_CONFIG (text of the merged fragments), PB_REQUIRED (lines), PB_IMAGE, PB_FLAGS
#   PB_JOBS, PB_NICE, PB_CCACHE_SIZE
set -eu -o pipefail
umask 022
{ # read as a whole before anything runs: the script comes on stdin, which its children must not eat
exec </dev/null

# The user's own CFLAGS, ARCH, MAKEFLAGS or ccache settings must not get into a kernel. What marks our processes stays.
for name in $(compgen -e); do
    case $name in
        PATH | HOME | USER | TMPDIR | PERFBISECT_* | PB_*) ;;
        *) unset "$name" ;;
    esac
done
export LC_ALL=C.UTF-8
# Never ccache's depend mode, cheap as its misses are: it does not see .incbin, and the object that wraps the compressed
# kernel (arch/x86/boot/compressed/piggy.S) came from another commit, so that the image held that commit's kernel.
export CCACHE_DIR=$PB_FOLDER/ccache CCACHE_MAXSIZE=$PB_CCACHE_SIZE
# Set and empty: no '+' behind the release, which must not depend on the state of a git tree.
export LOCALVERSION=
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026' KBUILD_BUILD_VERSION=1
export KBUILD_BUILD_USER=perfbisect KBUILD_BUILD_HOST=perfbisect

builder=$PB_FOLDER/builder
source=$builder/source
repository=$builder/repository.git
out=$builder/out/$PB_OUT
result=$builder/results/$PB_KEY
mkdir -p "$source" "$out" "$builder/results" "$CCACHE_DIR"

# Held by every process below, so that a build whose master was killed is waited for, never disturbed.
exec 9>>"$builder/lock"
flock 9

if [ -e "$result/artefacts.tar" ]; then # finished after its master was killed, and never fetched
    cat "$result/facts"
    exit 0
fi
# Results are fetched at once; a few are kept for masters that come back late.
find "$builder/results" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn | tail -n +9 | cut -d' ' -f2- | xargs -r rm -rf
rm -rf "$builder/work"
mkdir -p "$builder/work/tuxmake"
cd "$builder/work"
log=$builder/work/build.log
started=$(date +%s.%N)

finish() { # status
    times >times # a builtin: in a pipe it would tell of the pipe
    {
        echo "status=$1"
        echo "seconds=$(echo "$(date +%s.%N) - $started" | bc)"
        echo "cpu_seconds=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' times)"
        echo "free_kb=$(df -Pk "$out" | awk 'END { print $4 }')"
        echo "hits=$(ccache --print-stats | awk '/^(direct|preprocessed)_cache_hit\t/ { n += $2 } END { print n + 0 }')"
        echo "misses=$(ccache --print-stats | awk '/^cache_miss\t/ { print $2 }')"
        echo "compiled=$(grep -cE '^  (CC|AS|HOSTCC) ' "$log" || true)"
    } >>facts
    tar -cf artefacts.tar build.log facts $(ls config image tuxmake.json 2>/dev/null)
    rm -rf "$result"
    mkdir "$result"
    cp facts "$result/facts"
    mv artefacts.tar "$result/artefacts.tar"
    cat facts
    exit 0
}

# --- source: only what differs is written, so that make sees only that as new
if [ ! -d "$repository/objects" ]; then
    rm -rf "$repository"
    git init -q --bare "$repository"
fi
if [ -n "$PB_OBJECTS" ]; then
    echo "$PB_OBJECTS" | tr ':' '\n' >"$repository/objects/info/alternates"
fi
tree() { git --git-dir="$repository" --work-tree="$source" -c core.bare=false -c core.autocrlf=false "$@"; }
rm -f "$repository/index.lock"
if ! tree read-tree --reset -u "$PB_TREE" 2>checkout.log; then
    rm -rf "$source" "$repository/index" # whatever it was, a fresh checkout is free of it
    mkdir "$source"
    tree read-tree --reset -u "$PB_TREE"
fi
tree clean -ffdxq
if [ ! -e "$source/Makefile" ] || [ ! -e "$source/Kconfig" ] || [ ! -e "$source/Kbuild" ]; then
    echo "there is no Linux kernel in this tree" >"$log"
    finish not-linux
fi

# --- configuration: our fragments over the base; what nobody asked for stays off (defaults differ between releases)
make="make -s -C $source O=$out ARCH=$PB_ARCH"
printf '%s\n' "$PB_CONFIG" >wanted.config
{
    $make "$PB_BASE" &&
        if [ -e "$source/scripts/kconfig/merge_config.sh" ]; then
            (cd "$source" && sh scripts/kconfig/merge_config.sh -m -O "$builder/work" "$out/.config" "$builder/work/wanted.config") &&
                mv "$builder/work/.config" "$builder/work/merged.config"
        else
            cat "$out/.config" wanted.config >merged.config
        fi &&
        KCONFIG_ALLCONFIG="$builder/work/merged.config" $make allnoconfig
} >"$log" 2>&1 9>&- || finish config-failed
cp "$out/.config" config
missing=0
while read -r line; do
    case $line in
        '# '*' is not set')
            option=${line#\# }
            grep -qE "^${option% is not set}=" config || continue
            ;;
        *) grep -qxF "$line" config && continue ;;
    esac
    echo "required option not granted: $line" >>"$log"
    missing=1
done < <(printf '%s\n' "$PB_REQUIRED" | grep .)
[ $missing = 0 ] || finish refused

# --- compile
code=0
nice -n "$PB_NICE" tuxmake --directory "$source" --build-dir "$out" --output-dir "$builder/work/tuxmake" \
    --runtime null --target-arch "$PB_ARCH" --toolchain "$PB_TOOLCHAIN" --wrapper ccache --kconfig "$out/.config" \
    --jobs "$PB_JOBS" --fail-fast --verbose --make-target "$(basename "$PB_IMAGE")" \
    --environment "KCFLAGS=-ffile-prefix-map=$out/=${PB_FLAGS:+ $PB_FLAGS}" \
    --environment "KBUILD_BUILD_TIMESTAMP=$KBUILD_BUILD_TIMESTAMP" \
    --environment "KBUILD_BUILD_USER=$KBUILD_BUILD_USER" --environment "KBUILD_BUILD_HOST=$KBUILD_BUILD_HOST" \
    config >console.log 2>&1 || code=$?
cat tuxmake/build.log >>"$log" 2>/dev/null || cat console.log >>"$log"
if [ $code != 0 ] || [ ! -e "$out/$PB_IMAGE" ]; then
    finish failed
fi

# --- inspect
cp "$out/$PB_IMAGE" image
cp tuxmake/metadata.json tuxmake.json
{
    echo "release=$(cat "$out/include/config/kernel.release")"
    echo "build_id=$(readelf -n "$out/vmlinux" | awk '/Build ID:/ { print $3; exit }')"
    echo "binary=$(sha256sum <image | cut -d' ' -f1)"
    size "$out/vmlinux" | awk 'NR == 2 { print "text=" $1; print "data=" $2; print "bss=" $3 }'
    echo "image=$(stat -c %s image)"
} >facts
finish ok
}
