# Takes a pack of git objects into the builder's repository and remembers which tree it completes.
set -eu
{
exec </dev/null
builder=$PB_FOLDER/builder
repository=$builder/repository.git
exec 9>>"$builder/lock"
flock 9
if [ ! -d "$repository/objects" ]; then
    git init -q --bare "$repository"
fi
git --git-dir="$repository" index-pack --stdin <"$builder/$PB_KEY.pack" >/dev/null
rm -f "$builder/$PB_KEY.pack"
echo "$PB_TREE" >>"$builder/trees"
}
