# Builds one kernel on a builder: checks out a tree, has compile.sh configure, compile and inspect it in a sandbox, and
# keeps what that gives. Reads PB_* variables, prints 'key=value' lines for kernel_builder.py, and leaves
# results/<key>/artefacts.tar. It fails (code other than 0) only for reasons that are not the kernel's; what the kernel
# did is in 'status='.
#
#   PB_FOLDER   where everything lives: the source at one fixed path (ccache hits depend on it), outputs, ccache
#   PB_TREE     git tree to build;  PB_OBJECTS  object folders it is in, one a line, for a builder on this machine
#   PB_DOMAIN   names the repository: builds of one share a compiler cache and output folders, those of two do not
#   PB_KEY      name of the result; PB_OUT     name of the (warm) output folder
#   PB_WAIT     seconds to wait for another build;  PB_HOLDER  who we are, for others who wait
#   PB_SECONDS  what compile.sh may take; then it is ended, so that a Makefile that hangs does not keep the folder for ever
#   PB_NOW      the master's time when it started this, in seconds since 1970
#   PB_ARCH, PB_COMPILER, PB_CROSS (prefix of binutils), PB_DRIVER (tuxmake or make), PB_FLAGS
#   PB_BASE      make target to start from, empty: the file <key>-<play>.config below 'builder';  PB_REST  off or default
#   PB_PROGRAMS  folder of the compiler below 'builder', if it came as an archive
#   PB_SHIM, PB_HOST_SHIM  scripts that stand in for the compiler, or empty
#   PB_CONFIG    text of the merged fragments;  PB_REQUIRED  lines that must be granted, '|' between names of one option
#   PB_IMAGE     paths that the image may have, the first that is there counts
#   PB_JOBS, PB_NICE, PB_CCACHE_SIZE
# The variable 'compile' holds compile.sh.
#
# What a build can write ('out', 'ccache', 'work') belongs to the sandbox's user, and may hold anything, such as links
# to files of ours. So this script only makes, moves and removes these folders as a whole; it opens no file in them.
set -eu -o pipefail
umask 022
uptime() { cut -d. -f1 /proc/uptime; }
began=$(uptime)
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
# The user's configuration of git can name filters, and must not change what is built.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export CCACHE_DIR=$PB_FOLDER/ccache CCACHE_MAXSIZE=$PB_CCACHE_SIZE
# What __DATE__ says, in trees that still use it.
export SOURCE_DATE_EPOCH=1767225600
# Set and empty: no '+' behind the release, which must not depend on the state of a git tree.
export LOCALVERSION=
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 2026' KBUILD_BUILD_VERSION=1
export KBUILD_BUILD_USER=perfbisect KBUILD_BUILD_HOST=perfbisect

source=$builder/source
repository=$builder/repository.git
out=$builder/out
work=$builder/work
result=$builder/results/$PB_KEY
base_config=$builder/$PB_KEY-${PERFBISECT_PLAY:-by-hand}.config # of this play: another may build the same
PATH=${PB_PROGRAMS:+$builder/$PB_PROGRAMS:}$PATH:$builder/tools/bin # the last: tuxmake, where the builder had none
mkdir -p "$source" "$builder/results" "$builder/domains"

# Held to the end, so that a build whose master was killed is waited for, never disturbed. The folder is
# what is locked: two inventories, or two users of this builder, may know it by different names.
exec 9>>"$builder/lock"
if ! flock -w "$PB_WAIT" 9; then
    rm -f "$base_config"
    echo status=busy
    echo "holder=$(head -c 1000 "$builder/lock.holder" 2>/dev/null | tr -d '\n')"
    exit 0
fi

discard() { # folders, in which a build may have closed folders to all
    rm -rf "$@" 2>/dev/null || { chmod -R u+rwX "$@" && rm -rf "$@"; }
}
# Make decides by the times of files what it compiles. Under a clock that is wrong, or one that is set right meanwhile, it
# leaves out what has changed, in this build or in a later one. Below two minutes no build of a kernel ends.
require_clock() { # folders that it has spoiled, if it was right before
    local ahead=$(($(date +%s) - PB_NOW - $(uptime) + began))
    if [ ${ahead#-} -gt 120 ]; then
        rm -f "$base_config"
        [ $# = 0 ] || discard "$@"
        echo status=wrong-clock
        echo "ahead=$ahead"
        exit 0
    fi
}
require_clock

# Finished after its master was killed, and never fetched. What failed is tried again: it may have been the machine. So
# is what an earlier version built, which kept no symbols.
if [ -e "$result/artefacts.tar" ] && grep -qx status=ok "$result/facts" &&
    tar -tf "$result/artefacts.tar" System.map.gz >/dev/null 2>&1; then
    cat "$result/facts"
    exit 0
fi
latest_first() { find "$1" -mindepth 1 -maxdepth 1 -printf '%T@ %p\n' | sort -rn | cut -d' ' -f2-; }
# Results are fetched at once; a few are kept for masters that come back late.
latest_first "$builder/results" | tail -n +9 | while read -r old; do rm -rf "$old"; done
printf '%s' "$PB_HOLDER" >"$builder/lock.holder"
find "$builder" -maxdepth 1 -name '*.config' -mmin +1440 -delete # of plays that were killed

# --- what is warm is of one repository; another's is put away, so that its builds can spoil nothing here
domain=$(cat "$builder/domain" 2>/dev/null || echo "$PB_DOMAIN")
if [ "$domain" != "$PB_DOMAIN" ]; then
    mkdir -p "$builder/domains/$domain"
    for folder in "$out" "$CCACHE_DIR"; do
        [ ! -e "$folder" ] || mv -T "$folder" "$builder/domains/$domain/${folder##*/}"
    done
fi
echo "$PB_DOMAIN" >"$builder/domain.new"
mv "$builder/domain.new" "$builder/domain"
for folder in "$out" "$CCACHE_DIR"; do
    [ -e "$folder" ] || [ ! -e "$builder/domains/$PB_DOMAIN/${folder##*/}" ] ||
        mv -T "$builder/domains/$PB_DOMAIN/${folder##*/}" "$folder"
done
rm -rf "$builder/domains/$PB_DOMAIN"
latest_first "$builder/domains" | tail -n +4 | while read -r old; do discard "$old"; done

discard "$work" "$builder/parked" "$builder/configure" # the last two: of earlier versions
sandbox_owner "$out" "$CCACHE_DIR" "$work"
export PB_STARTED
PB_STARTED=$(date +%s.%N)
show_programs "$PB_COMPILER" "${PB_CROSS}ld" ccache make python3 $([ "$PB_DRIVER" = make ] || echo tuxmake)
choose_sandbox "$work"
if [ $sandbox = none ]; then
    echo "a kernel's own programs can be run safely neither by bubblewrap nor by unshare nor as another user" >&2
    exit 1
fi

keep() { # archive, facts
    require_clock "$out"
    rm -rf "$result"
    mkdir "$result"
    {
        echo "$2"
        echo "free_kb=$(df -Pk "$builder" | awk 'END { print $4 }')"
        echo "sandbox=$sandbox"
    } >"$result/facts"
    mv "$1" "$result/artefacts.tar"
    cat "$result/facts"
}
keep_log() { # status, file
    rm -rf "$builder/answer"
    mkdir "$builder/answer"
    mv "$2" "$builder/answer/build.log"
    tar -C "$builder/answer" -cf "$builder/answer.tar" build.log
    keep "$builder/answer.tar" "status=$1"
}

# --- source: only what differs is written, so that make sees only that as new
( # whoever sends objects takes no other lock, so that none waits for a whole build
    flock 8
    if [ ! -d "$repository/objects" ]; then
        rm -rf "$repository"
        git init -q --bare "$repository"
    fi
) 8>>"$builder/repository.lock"
if [ -n "$PB_OBJECTS" ]; then
    printf '%s\n' "$PB_OBJECTS" >"$repository/objects/info/alternates"
fi
tree() { git --git-dir="$repository" --work-tree="$source" -c core.bare=false -c core.autocrlf=false "$@"; }
rm -f "$repository/index.lock"
if ! tree read-tree --reset -u "$PB_TREE" 2>"$builder/checkout.log"; then
    rm -rf "$source" "$repository/index" # whatever it was, a fresh checkout is free of it
    mkdir "$source"
    tree read-tree --reset -u "$PB_TREE"
fi
tree clean -ffdxq
if [ ! -e "$source/Makefile" ] || [ ! -e "$source/Kbuild" ]; then # as every release since v2.6.13 has
    echo "there is no Linux kernel in this tree" >"$builder/checkout.log"
    keep_log not-linux "$builder/checkout.log"
    exit 0
fi
if [ -z "$PB_BASE" ]; then
    install -m 644 "$base_config" "$work/given.config"
    rm -f "$base_config"
fi

# --- the compiler
shim() { # name, text
    if [ -n "$2" ]; then
        local folder=$builder/shims/$(printf '%s' "$2" | sha256sum | cut -c1-16)
        if [ ! -x "$folder/$1" ]; then
            mkdir -p "$folder"
            printf '%s' "$2" >"$folder/$1.new"
            chmod 755 "$folder/$1.new"
            mv "$folder/$1.new" "$folder/$1"
        fi
        echo "$folder/$1"
    fi
}
# In depend mode a miss of the compiler cache costs a quarter less, for nothing is preprocessed twice. It does not see
# .incbin, by which the image's wrapper takes in the packed kernel (piggy.S): it is for C without that word. (Compiling
# what was preprocessed costs as little, but -Werror does not hold then for the preprocessor's warnings, and Kconfig asks
# in that way what the compiler can do.)
real_ccache=/usr/bin/ccache
[ $sandbox = container ] || real_ccache=$(command -v ccache)
PB_CCACHE_FOLDER=$(dirname "$(shim ccache '#!/bin/sh
for source; do :; done
case $source in *.c) grep -q incbin "$source" || export CCACHE_DEPEND=1 ;; esac
exec '"$real_ccache"' "$@"
')")
export PB_CCACHE_FOLDER PB_CC PB_HOSTCC PB_CCACHE=ccache PB_EXTRA_FLAGS=$PB_FLAGS
PB_CC=$(shim cc "$PB_SHIM")
PB_HOSTCC=$(shim hostcc "$PB_HOST_SHIM")

# --- compile
visible=("$builder/shims" "$builder/toolchains" "$builder/tools")
writable=("$out" "$CCACHE_DIR" "$work")
# Old trees put the path of their sources into the kernel (__FILE__): it has to be the same on all builders.
if [ $sandbox = user ]; then
    export PB_SOURCE=$source
else
    tree=$source
    export PB_SOURCE=$tree_inside
fi
code=0
compiling=$(uptime)
sandboxed timeout --kill-after=10 "$PB_SECONDS" bash -s <<<"$compile" >"$builder/answer.tar" 2>"$builder/answer.log" || code=$?
compiled=$(($(uptime) - compiling))
# 'busy', 'wrong-clock' and 'timed-out' are this script's own words, and lines are what a master takes for such.
facts=$(tar -xOf "$builder/answer.tar" facts 2>/dev/null | head -c 65536 | LC_ALL=C tr -cd '\n -~' | grep -vE '^ *status *= *(busy|wrong-clock|timed-out)') || true
if [ "$compiled" -ge "$PB_SECONDS" ] && { [ $code = 124 ] || [ $code = 137 ]; }; then # by timeout: TERM, or KILL
    # Where it hung is in a folder that is the build's own, and may lead anywhere: it is read where the build ran.
    sandboxed timeout 60 tail -q -c 1M "$work/build.log" "$work/tuxmake/build.log" 2>/dev/null |
        head -c $((2 << 20)) >"$builder/answer.log" || true
    printf '\n%s\n' "the build was ended: it took longer than $PB_SECONDS s" >>"$builder/answer.log"
    keep_log timed-out "$builder/answer.log"
elif grep -q ^status= <<<"$facts"; then
    keep "$builder/answer.tar" "$facts"
elif [ $code -ge 128 ]; then # it ended the shell that compile.sh runs in, or the system did
    dd if="$work/build.log" iflag=nofollow,nonblock bs=1M count=64 of="$builder/answer.log" 2>/dev/null || true
    echo "the build ended without an answer (code $code)" >>"$builder/answer.log"
    keep_log failed "$builder/answer.log"
else
    head -c 4000 "$builder/answer.log" >&2
    discard "$out" # it may be what another build left there
    exit 1
fi
# What a failed build leaves must not keep the next one from room to work in.
[ "$(df -Pk "$builder" | awk 'END { print $4 }')" -gt $((1 << 20)) ] || grep -qx status=ok "$result/facts" || discard "$out" "$work"
}
