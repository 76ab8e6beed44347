# Takes a pack of git objects into the builder's repository and remembers which tree it completes.
set -eu
{
exec </dev/null
builder=$PB_FOLDER/builder
repository=$builder/repository.git
pack=$builder/$PERFBISECT_PLAY.pack
exec 8>>"$builder/repository.lock"
flock 8
if [ ! -d "$repository/objects" ]; then
    git init -q --bare "$repository"
fi
git --git-dir="$repository" index-pack --stdin <"$pack" >/dev/null
rm -f "$pack"
echo "$PB_TREE" >>"$builder/trees"
}
