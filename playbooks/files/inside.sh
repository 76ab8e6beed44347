# Goes before another script on the same input: runs the rest in the image PB_CONTAINER, or right here if that is empty.
# The folders have the same paths inside, so that what is built does not depend on where.
#   PB_CONTAINER  name@sha256:... of an image, or empty;  PB_FOLDER  where everything lives ('~' allowed)
#   PB_OBJECTS    further folders that are read (':' between), or unset
if [ -n "$PB_CONTAINER" ]; then
    if ! command -v podman >/dev/null; then
        echo missing=podman
        exit 0
    fi
    export PB_FOLDER=${PB_FOLDER/#\~/$HOME}
    mkdir -p "$PB_FOLDER"
    volumes=(--volume "$PB_FOLDER:$PB_FOLDER")
    IFS=: read -ra objects <<<"${PB_OBJECTS-}"
    for folder in "${objects[@]}"; do
        volumes+=(--volume "$folder:$folder:ro")
    done
    # What a killed build left behind. Those that run are waited for, by the lock that every build takes.
    podman container prune --force --filter label=perfbisect >/dev/null 2>&1 || true
    # podman asks for more open files and processes than a machine may grant. label: on hosts with SELinux the folder
    # keeps the label that it has.
    exec podman run --rm --interactive --label perfbisect --network none --pull never --security-opt label=disable \
        --ulimit "nofile=$(ulimit -Hn)" --ulimit nproc=16384 --env 'PB_*' --env 'PERFBISECT_*' --env "HOME=$PB_FOLDER" \
        "${volumes[@]}" "$PB_CONTAINER" bash -s
fi
