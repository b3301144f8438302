#!/usr/bin/env bash
# `.ci/newer-libc.sh` fetches a newer Debian's C library into .ci/newer-libc, if it is not there yet, and prints the path of its loader.
# `.ci/newer-libc.sh NODE NAME` makes a copy of a Node binary that runs on it, and prints the folder that has it as `node`, to be put in front
# of PATH. Nothing of the system is changed. Where it cannot be had, one line on stderr says why, and the exit code is 1.
#
# A copy whose interpreter is that library's loader, since a Node that is started by the loader takes that for its own path: what it starts
# anew (process.execPath) would not be Node.
set -euo pipefail
cd "$(dirname "$0")/.."
node=${1:-}
name=${2:-}
folder=$PWD/.ci/newer-libc
suite=trixie

fail() {
  echo "no newer C library: $1" >&2
  exit 1
}

[ "$(uname -s)" = Linux ] || fail "it is Debian's, for Linux"
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || fail "apt-get and dpkg-deb are not here"

if [ ! -e "$folder/complete" ]; then
  rm -rf "$folder"
  mkdir -p "$folder"/{lists/partial,cache/archives/partial,debs,root}
  . /etc/os-release
  # The mirror, and the key, that this system uses itself.
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="${VERSION_CODENAME:-}" '$2 == release && $3 == "main" { print $1; exit }')
  [ -n "$mirror" ] || fail "apt has no source of its own release (${VERSION_CODENAME:-unknown})"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -e "$keyring" ] || fail "$keyring is not here"
  printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' "$mirror" "$suite" "$keyring" >"$folder/newer.sources"
  apt=(apt-get -qq
    -o "Dir::Etc::sourcelist=$folder/newer.sources" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$folder/lists" -o "Dir::Cache=$folder/cache" -o Dir::State::status=/dev/null
    -o APT::Update::Error-Mode=any -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=2)
  "${apt[@]}" update >/dev/null 2>"$folder/errors" || fail "$(tail -n 1 "$folder/errors")"
  (cd "$folder/debs" && "${apt[@]}" download libc6 libstdc++6 libgcc-s1 patchelf >/dev/null 2>"$folder/errors") ||
    fail "$(tail -n 1 "$folder/errors")"
  for deb in "$folder"/debs/*.deb; do dpkg-deb -x "$deb" "$folder/root"; done
  # Only the libraries are needed from now on.
  rm -rf "$folder"/{lists,cache,debs}
  touch "$folder/complete"
fi

loader=$(find "$folder/root/usr/lib" -name 'ld-linux-*.so.*' -type f | head -n 1)
[ -n "$loader" ] || fail "the package has no loader"
if [ -z "$node" ]; then
  echo "$loader"
  exit 0
fi
libraries=$(dirname "$loader")
copy=$folder/$name/node
if [ "$("$copy" --version 2>/dev/null)" != "$("$node" --version)" ]; then
  mkdir -p "$folder/$name"
  # Without --no-sort, patchelf 0.18 moves sections of the file that Node does not start without.
  "$loader" --library-path "$libraries" "$folder/root/usr/bin/patchelf" \
    --no-sort --set-interpreter "$loader" --force-rpath --set-rpath "$libraries" --output "$copy.new" "$node"
  mv "$copy.new" "$copy"
  "$copy" --version >/dev/null || fail "$node does not run on it"
fi
dirname "$copy"
