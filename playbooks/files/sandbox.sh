# Goes before another script on the same input. Defines where a kernel's own Makefiles, scripts and programs run:
#   sandboxed COMMAND...  runs a command that sees the system's programs and the folders in 'visible' (read-only), may
#                         write below 'writable', is never root, has no network and no home, and leaves no process
#   choose_sandbox FOLDER (after show_programs) finds the first way that works here and can write to FOLDER, 'sandbox':
#                         container (the image PB_CONTAINER, by podman), bubblewrap, namespaces (unshare), user (another
#                         user id, which only root can take, and which has the network), else none
visible=()  # folders and files, by their paths, which are the same inside
tree=       # a folder that is seen as 'tree_inside' wherever it lies, so that its path is the same on all builders
tree_inside=/linux
programs=() # the same, which show_programs found; not for a container, which has its own
writable=() # folders that sandbox_owner has made over

export PB_FOLDER=${PB_FOLDER/#\~/$HOME}
builder=$PB_FOLDER/builder
sandbox_user=$(id -u)
as_user=()
if [ "$sandbox_user" = 0 ]; then
    # Another for each builder's folder, of numbers that no system or container manager gives to anybody (systemd's
    # UIDS-GIDS.md: 1879048192 to 2147483647 are unused).
    sandbox_user=$((2000000000 + $(printf %s "$builder" | cksum | cut -d ' ' -f 1) % 100000000))
    # nobody, in a container whose user namespace knows fewer
    setpriv --reuid $sandbox_user --clear-groups true 2>/dev/null || sandbox_user=65534
    as_user=(setpriv --reuid $sandbox_user --regid $sandbox_user --clear-groups --no-new-privs)
fi

# Gives folders to the user of the sandbox; links in them are not followed.
sandbox_owner() { # folders
    local folder
    for folder; do
        mkdir -p "$folder"
        [ "$(id -u)" != 0 ] || [ "$(stat -c %u "$folder")" = $sandbox_user ] ||
            chown -R --no-dereference $sandbox_user:$sandbox_user "$folder"
    done
}

# Adds the folders of PATH that are not the system's, and where a program and its interpreter are installed.
show_programs() { # programs
    local folder program path
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}"; do
        show "$folder" || true
    done
    for program; do
        path=$(readlink -f "$(command -v "$program" || true)" || true)
        [ -n "$path" ] || continue
        show "$(dirname "$(dirname "$path")")" || show "$(dirname "$path")" || true
        case $(head -c 2 "$path" | tr -d '\0') in
            '#!') path=$(readlink -f "$(head -n 1 "$path" | cut -c 3- | awk '{ print $1 }')" || true)
                [ -z "$path" ] || show "$(dirname "$(dirname "$path")")" || true ;;
        esac
    done
}

show() { # folder; fails for one that holds the home, the builder's folder or everything
    case $1 in
        /usr | /usr/* | /bin | /sbin) return 0 ;;
        /*) ;;
        *) return 1 ;;
    esac
    local above=${1%/} # not inside the patterns: bash takes the slash there for another
    case $HOME/ in "$above"/*) return 1 ;; esac
    case $PB_FOLDER/ in "$above"/*) return 1 ;; esac
    [ ! -d "$1" ] || programs+=("$1")
}

system=(/usr /etc/alternatives /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d)
roots=(/bin /sbin /lib /lib32 /lib64 /libx32)

sandboxed() { # command
    (
        ulimit -c 0
        ulimit -f $((16 << 20)) 2>/dev/null || true # KiB in one file, if no lower limit holds: no kernel is as large
        [ "$(id -u)" != 0 ] || ulimit -u 16384 # processes and threads of this user, as podman has it
        export HOME=/nonexistent
        # The lock of the builder stays with what waits for the command, which might give it back.
        "in_$sandbox" bash -c 'exec 9>&-; exec "$@"' bash "$@"
    )
}

in_bubblewrap() {
    local path folders=() options=(--die-with-parent --new-session --unshare-ipc --unshare-pid --unshare-net --unshare-uts
        --unshare-cgroup-try --proc /proc --dev /dev --perms 1777 --tmpfs /tmp)
    if [ "$(id -u)" = 0 ]; then
        options+=(--cap-drop ALL --cap-add CAP_SETUID --cap-add CAP_SETGID)
    else
        options+=(--unshare-user)
    fi
    for path in "${roots[@]}"; do
        if [ -L "$path" ]; then
            options+=(--symlink "$(readlink "$path")" "$path")
        else
            options+=(--ro-bind-try "$path" "$path")
        fi
    done
    # Folders that bubblewrap makes on the way to a place are closed to all but root unless they are named.
    for path in "${system[@]}" "${programs[@]}" "${visible[@]}" "${writable[@]}"; do
        while path=$(dirname "$path"); [ "$path" != / ]; do
            case $path in /usr | /tmp) ;; *) folders=(--perms 0755 --dir "$path" "${folders[@]}") ;; esac
        done
    done
    options+=("${folders[@]}")
    for path in "${system[@]}" "${programs[@]}" "${visible[@]}"; do options+=(--ro-bind-try "$path" "$path"); done
    for path in "${writable[@]}"; do options+=(--bind "$path" "$path"); done
    [ -z "$tree" ] || options+=(--ro-bind "$tree" "$tree_inside")
    bwrap "${options[@]}" --remount-ro / --chdir / "${as_user[@]}" "$@"
}

# The same with util-linux only.
in_namespaces() {
    local map=()
    [ "$(id -u)" = 0 ] || map=(--user --map-root-user)
    mkdir -p "$builder/root"
    unshare "${map[@]}" --mount --pid --net --ipc --uts --fork --kill-child --propagation private \
        bash -c "$(declare -p system roots programs visible tree tree_inside writable as_user builder); $(declare -f enter_root); "'enter_root "$@"' bash "$@"
}

enter_root() { # command
    set -eu
    local path root=$builder/root
    mount -t tmpfs -o mode=755 sandbox "$root"
    place() { # path, where it is inside: something to mount it on
        if [ -d "$1" ]; then
            mkdir -p "$root$2"
        else
            mkdir -p "$root$(dirname "$2")"
            : >"$root$2"
        fi
        mount --rbind "$1" "$root$2"
    }
    show_at() { # the same, read-only
        place "$1" "$2"
        mount -o remount,bind,ro "$root$2"
    }
    mkdir -m 1777 "$root/tmp"
    for path in "${roots[@]}"; do
        if [ -L "$path" ]; then cp -P "$path" "$root$path"; elif [ -d "$path" ]; then system+=("$path"); fi
    done
    for path in "${system[@]}" "${programs[@]}" "${visible[@]}"; do
        [ ! -e "$path" ] || show_at "$path" "$path"
    done
    [ -z "$tree" ] || show_at "$tree" "$tree_inside"
    for path in /dev/null /dev/zero /dev/full /dev/random /dev/urandom "${writable[@]}"; do place "$path" "$path"; done
    ln -s /proc/self/fd "$root/dev/fd"
    mkdir "$root/proc" "$root/old"
    mount -t proc proc "$root/proc"
    cd "$root"
    pivot_root . old
    umount -l /old
    rmdir /old
    mount -o remount,bind,ro /
    if [ ${#as_user[@]} -gt 0 ]; then
        exec "${as_user[@]}" "$@"
    fi
    exec unshare --user --map-user=1000 --map-group=1000 setpriv --no-new-privs "$@"
}

in_container() {
    local path volumes=() user=(--user "$sandbox_user:$sandbox_user")
    [ "$(id -u)" = 0 ] || user=(--userns keep-id)
    for path in "${visible[@]}"; do [ ! -e "$path" ] || volumes+=(--volume "$path:$path:ro"); done
    for path in "${writable[@]}"; do volumes+=(--volume "$path:$path"); done
    [ -z "$tree" ] || volumes+=(--volume "$tree:$tree_inside:ro")
    # What a killed build left behind; the builder's lock is ours.
    podman ps --all --quiet --filter "label=perfbisect=$builder" | xargs -r podman rm --force >/dev/null
    # podman asks for more open files and processes than a machine may grant. label: on hosts with SELinux the folder
    # keeps the label that it has.
    podman run --rm --interactive --label "perfbisect=$builder" --network none --pull never --security-opt label=disable \
        --security-opt no-new-privileges --cap-drop all --read-only --workdir / "${user[@]}" \
        --ulimit "nofile=$(ulimit -Hn)" --ulimit nproc=16384 --env 'PB_*' --env 'PERFBISECT_*' --env 'KBUILD_*' \
        --env 'CCACHE_*' --env LC_ALL --env LOCALVERSION --env SOURCE_DATE_EPOCH --env "HOME=$HOME" \
        "${volumes[@]}" "$PB_CONTAINER" "$@"
}

in_user() { # only for root; what it leaves running is ended; it has no root of its own for 'tree_inside'
    local code=0
    [ "$(id -u)" = 0 ] || return 1
    "${as_user[@]}" kill -9 -1 2>/dev/null || true # what a killed build left behind
    "${as_user[@]}" "$@" || code=$?
    "${as_user[@]}" kill -9 -1 2>/dev/null || true
    return $code
}

choose_sandbox() { # folder
    writable=("$1")
    if [ -n "${PB_CONTAINER-}" ]; then
        sandbox=container
    else
        for sandbox in bubblewrap namespaces user none; do
            [ $sandbox = none ] || ! sandboxed test -w "$1" 2>/dev/null || break
        done
    fi
    writable=()
}
