# Configures, compiles, inspects and packs one kernel, inside the sandbox of build.sh, whose variables it has. Its output
# is a tar archive: facts, build.log, and of a kernel that was made config, image, modules.tar.gz, sources.gz,
# System.map.gz.
set -eu -o pipefail
umask 022
{ # read as a whole before anything runs: the script comes on stdin, which its children must not eat
exec </dev/null 3>&1 >&2
builder=$PB_FOLDER/builder
source=$PB_SOURCE
out=$builder/out/$PB_OUT
configure=$builder/out/.configure/$PB_OUT
parked=$builder/out/.parked
PATH=$PB_CCACHE_FOLDER:$PATH
cc=$PB_CC
hostcc=$PB_HOSTCC
log=$builder/work/build.log
cd "$builder/work"
export TMPDIR=$builder/work/tmp
mkdir -p "$configure" "$parked" "$TMPDIR" tuxmake
: >"$log"

finish() { # status
    times >times # a builtin: in a pipe it would tell of the pipe
    {
        echo "status=$1"
        echo "seconds=$(echo "$(date +%s.%N) - $PB_STARTED" | bc)"
        echo "cpu_seconds=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' times)"
        echo "hits=$(ccache --print-stats | awk '/^(direct|preprocessed)_cache_hit\t/ { n += $2 } END { print n + 0 }')"
        echo "misses=$(ccache --print-stats | awk '/^cache_miss\t/ { print $2 }')"
        echo "compiled=$(grep -cE '^  (CC|AS|HOSTCC) ' "$log" || true)"
    } >>facts
    tar -cf - facts build.log $(ls config image modules.tar.gz sources.gz System.map.gz tuxmake.json 2>/dev/null) >&3
    exit 0
}

# --- configuration: our fragments over the base; what nobody asked for stays off (defaults differ between releases).
# Made beside the output folder, so that it tells which of several output folders fits best.
kernel_make() { # output folder, arguments
    local folder=$1
    shift
    make -C "$source" O="$folder" ARCH="$PB_ARCH" ${PB_CROSS:+"CROSS_COMPILE=$PB_CROSS"} CC="${cc:-$PB_COMPILER}" \
        ${hostcc:+"HOSTCC=$hostcc"} "$@"
}
printf '%s\n' "$PB_CONFIG" >wanted.config
{
    : >base.config
    if [ -z "$PB_BASE" ]; then
        cp given.config base.config
    elif [ "$PB_BASE" != allnoconfig ]; then
        kernel_make "$configure" -s "$PB_BASE" && cp "$configure/.config" base.config
    fi &&
        if [ -e "$source/scripts/kconfig/merge_config.sh" ]; then
            (cd "$TMPDIR" && sh "$source/scripts/kconfig/merge_config.sh" -m -O "$builder/work" "$builder/work/base.config" "$builder/work/wanted.config") &&
                mv .config merged.config
        else
            cat base.config wanted.config >merged.config # the last word on an option counts there, too
        fi &&
        case $PB_REST in
            off) KCONFIG_ALLCONFIG="$builder/work/merged.config" kernel_make "$configure" -s allnoconfig ;;
            default)
                cp merged.config "$configure/.config" &&
                    if grep -q olddefconfig "$source"/scripts/kconfig/Makefile "$source"/Makefile; then
                        kernel_make "$configure" -s olddefconfig
                    else
                        (yes '' || true) | kernel_make "$configure" -s oldconfig
                    fi
                ;;
        esac
} >"$log" 2>&1 || finish config-failed
cp "$configure/.config" config
modules=no
if grep -qx CONFIG_MODULES=y config && grep -qE '^CONFIG_[A-Za-z0-9_]+=m$' config; then
    modules=yes
fi
granted() { # a line as in .config
    case $1 in
        '# '*' is not set')
            local option=${1#\# }
            ! grep -qE "^${option% is not set}=" config
            ;;
        *) grep -qxF "$1" config ;;
    esac
}
missing=0
while IFS= read -r names; do
    IFS='|' read -ra lines <<<"$names"
    for line in "${lines[@]}"; do
        granted "$line" && continue 2
    done
    echo "required option not granted: $names" >>"$log"
    missing=1
done < <(printf '%s\n' "$PB_REQUIRED" | grep .)
[ $missing = 0 ] || finish refused

# --- the output folder: one stays warm for each of the last few configurations. Make trusts the times of files, and the
# checkout makes what differs newer than any object, so that a folder that rested for a while is as good as a new one.
# The folder in use has one path, whatever is in it, because that path is part of every command that make remembers.
options() { grep -E '^(# )?CONFIG_' "$1"; } # the head of the file has the release, and once had the time of day
fits=$(options config | sha256sum | cut -c1-16)
age=$(awk '/^(VERSION|PATCHLEVEL|SUBLEVEL) *=/ { printf "%s.", $3 }' "$source/Makefile")
last=$(cat "$out/.perfbisect-config" 2>/dev/null || true)
last_age=$(cat "$out/.perfbisect-age" 2>/dev/null || true)
if [ -d "$out" ] && [ "$last" != "$fits" ]; then
    away=$parked/$PB_OUT.${last:-unknown}
    rm -rf "$away"
    mv "$out" "$away"
    touch "$away"
    if [ -d "$parked/$PB_OUT.$fits" ]; then
        mv "$parked/$PB_OUT.$fits" "$out"
    elif [ "$last_age" = "$age" ]; then
        cp -a "$away" "$out" # nearer than nothing: only what depends on the options that differ is compiled
    fi
fi
# Nothing is kept from one release to another: headers that one makes and the other brings would get into each other's way.
[ ! -d "$out" ] || [ "$(cat "$out/.perfbisect-age" 2>/dev/null)" = "$age" ] || rm -rf "$out"
resting() { find "$parked" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn | cut -d' ' -f2-; }
resting | tail -n +4 | xargs -r rm -rf
if [ "$(df -Pk "$builder/out" | awk 'END { print $4 }')" -lt $((4 << 20)) ]; then # room is worth more than warmth
    resting | xargs -r rm -rf
fi
echo "out=$fits" >facts

# --- compile
target=$(basename "${PB_IMAGE%% *}")
modules_target=
[ $modules = no ] || modules_target=modules
same_options() { # but for the name by which the compiler was called
    [ -e "$out/.config" ] && [ "$(options config | grep -v CC_VERSION_TEXT)" = "$(options "$out/.config" | grep -v CC_VERSION_TEXT)" ]
}
compile() {
    mkdir -p "$out"
    if [ -e "$out/.perfbisect-unfinished" ]; then
        # A build ended here before its time, and what was being written then may be half a file, which make takes for
        # a whole one. All that is older stays. What is missing make makes again, but for the marks of changed options.
        local newest
        newest=$(find "$out" -type f -printf '%T@\n' | sort -n | tail -n 1)
        find "$out" -type f -newermt "@$((${newest%.*} - 30))" ! -path "$out/include/config/*" ! -name '.perfbisect-*' -delete
    fi
    : >"$out/.perfbisect-unfinished"
    # tuxmake takes a configuration that it finds for the one it was asked for, and a warm folder may hold another.
    same_options || cp config "$out/.config"
    echo "$fits" >"$out/.perfbisect-config"
    echo "$age" >"$out/.perfbisect-age"
    for image in $PB_IMAGE; do
        rm -f "$out/$image"
    done
    if [ "$PB_DRIVER" = tuxmake ]; then
        rm -rf "$builder/work/tuxmake"
        mkdir "$builder/work/tuxmake"
        nice -n "$PB_NICE" tuxmake --directory "$source" --build-dir "$out" --output-dir "$builder/work/tuxmake" \
            --runtime null --target-arch "$PB_ARCH" --toolchain "${PB_COMPILER#"$PB_CROSS"}" --wrapper ccache --kconfig "$builder/work/config" \
            --jobs "$PB_JOBS" --fail-fast --verbose --make-target "$target" ${modules_target:+--make-target modules} \
            --environment "KCFLAGS=-ffile-prefix-map=$out/=${PB_FLAGS:+ $PB_FLAGS}" \
            --environment "KBUILD_BUILD_TIMESTAMP=$KBUILD_BUILD_TIMESTAMP" \
            --environment "KBUILD_BUILD_USER=$KBUILD_BUILD_USER" --environment "KBUILD_BUILD_HOST=$KBUILD_BUILD_HOST" \
            config >console.log 2>&1 || code=$?
        cat tuxmake/build.log >>"$log" 2>/dev/null || cat console.log >>"$log"
    else
        rm -f "$out/.version" # counts builds, and the count is in the kernel
        # Made once and never looked at again; x86 has had three folders for its headers. From v2.6.27 on the second
        # link is made only with its folder.
        rm -rf "$out/include/asm" "$out/include2"
        nice -n "$PB_NICE" make -C "$source" O="$out" ARCH="$PB_ARCH" ${PB_CROSS:+"CROSS_COMPILE=$PB_CROSS"} \
            CC="${cc:-$PB_COMPILER}" ${hostcc:+"HOSTCC=$hostcc"} -j"$PB_JOBS" "$target" ${modules_target:+modules} >>"$log" 2>&1 || code=$?
    fi
    built=
    for image in $PB_IMAGE; do
        if [ -e "$out/$image" ]; then
            built=$out/$image
            break
        fi
    done
    if [ "$code" != 0 ] && ! grep -qE '\*\*\* |[Ee]rror:' "$log"; then # make tells each error of its own
        echo "perfbisect: make was ended without an error (code $code)" >>"$log"
    fi
    [ "$code" = 0 ] && [ -n "$built" ] && rm -f "$out/.perfbisect-unfinished"
}
warm=no
[ ! -d "$out" ] || warm=yes
code=0
if ! compile; then
    # A commit is not blamed for what another left behind, which make in old trees does not always see. A second try from
    # nothing costs little: what does compile comes from the compiler cache.
    [ $warm = yes ] && [ "$PB_DRIVER" = make ] || finish failed
    mv "$log" warm.log
    rm -rf "$out"
    code=0
    if ! compile; then
        finish failed
    fi
    { # costs time and no more, but one who wonders where the time goes should find it
        echo "the first try, in the output folder of another commit, failed:"
        tail -n 20 warm.log
    } >>"$log"
fi

# --- was it configured as recorded?
if ! same_options; then
    diff <(options config) <(options "$out/.config") >>"$log" || true
    rm -rf "$out"
    finish misconfigured
fi

# --- modules, as they will lie on the machine that runs them
if [ $modules = yes ]; then
    rm -rf installed
    kernel_make "$out" -s modules_install INSTALL_MOD_PATH="$builder/work/installed" INSTALL_MOD_STRIP=1 >>"$log" 2>&1 ||
        finish failed
    # What leads back to the builder's own folders is of no use elsewhere.
    rm -f installed/lib/modules/*/build installed/lib/modules/*/source
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C installed -cf - lib | gzip -n >modules.tar.gz
    rm -rf installed
fi

# --- inspect
# Does the image hold the kernel that was linked just now? A compiler cache once said yes to an old one.
cp "$built" image
# Room for notes without a note in it, as in 2.6.21-rc4, is an error to readelf.
build_id=$("${PB_CROSS}readelf" -n "$out/vmlinux" 2>/dev/null | awk '/Build ID:/ { print $3; exit }' || true)
packed=unknown # not packed with gzip, or older than build ids and not a raw image
# What a file with the kernel's loaded notes says of the id: a kernel whose notes are not loaded tells nothing.
# Not grep: it looks at lines, and an id may hold the byte that ends one.
tell_id() { # file
    python3 - "$build_id" "$1" <<'PYTHON'
import sys
kernel, header = open(sys.argv[2], "rb").read(), b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"
print("yes" if bytes.fromhex(sys.argv[1]) in kernel else "no" if header in kernel else "unknown")
PYTHON
}
at=$(LC_ALL=C grep -aboP -m 1 '\x1f\x8b\x08' image | head -n 1 | cut -d: -f1 || true)
if [ -n "$build_id" ] && [ "$(tell_id image)" = yes ]; then
    packed=yes # it is not packed at all
elif [ -n "$at" ]; then
    tail -c +$((at + 1)) image | gzip -dc >unpacked 2>/dev/null || true # what follows in the image is not gzip's
    if [ -n "$build_id" ]; then
        packed=$(tell_id unpacked)
    else
        "${PB_CROSS}objcopy" -O binary -R .note -R .comment -S "$out/vmlinux" linked
        if [ "$(stat -c %s linked)" = "$(stat -c %s unpacked)" ]; then
            if cmp -s linked unpacked; then packed=yes; else packed=no; fi
        fi
    fi
fi
if [ $packed = no ]; then
    rm -rf "$out"
    finish stale
fi
release=$(cat "$out/include/config/kernel.release" 2>/dev/null || cat "$out/.kernelrelease" 2>/dev/null ||
    awk -F'"' '/UTS_RELEASE/ { print $2 }' "$out"/include/linux/{utsrelease,version}.h 2>/dev/null)
# The same code is the same kernel, whatever its release is called and whatever names its objects bear: the loaded
# sections without notes, and without the release's own text.
"${PB_CROSS}objcopy" -O binary -R '.note*' -R .comment -S "$out/vmlinux" code
LC_ALL=C sed -i "s/$(printf '%s' "$release" | sed 's/[.[\*^$/]/\\&/g')/@/g" code
[ ! -e tuxmake/metadata.json ] || cp tuxmake/metadata.json tuxmake.json
{
    echo "release=$release"
    echo "build_id=$build_id"
    # Modules are code as well: kernels with the same image and other modules are not the same.
    echo "binary=$(cat code $(ls modules.tar.gz 2>/dev/null) | sha256sum | cut -d' ' -f1)"
    echo "packed=$packed"
    "${PB_CROSS}size" "$out/vmlinux" | awk 'NR == 2 { print "text=" $1; print "data=" $2; print "bss=" $3 }'
    echo "image=$(stat -c %s image)"
} >>facts
rm -f code linked unpacked
# What each address is, for counts of what a kernel executes.
[ ! -e "$out/System.map" ] || gzip -nc "$out/System.map" >System.map.gz
# Which files went in, by what make keeps for its own use: paths in the tree, and behind './' what the build itself made.
python3 - "$source" "$out" <<'PYTHON' | gzip -n >sources.gz
import os, sys
source, out = (os.path.realpath(folder) + "/" for folder in sys.argv[1:])
words = set()
for folder, _, names in os.walk(out):
    for name in names:
        if name.startswith(".") and name.endswith(".cmd"):
            with open(os.path.join(folder, name), errors="replace") as file:
                words.update(word for line in file if not line.startswith("cmd_") for word in line.split())
for path in {os.path.realpath(os.path.join(out, word)) for word in words if "/" in word or "." in word}:
    if os.path.isfile(path) and path.startswith(source):
        print(path.removeprefix(source))
    elif os.path.isfile(path) and path.startswith(out):
        print("./" + path.removeprefix(out))
PYTHON
finish ok
}
